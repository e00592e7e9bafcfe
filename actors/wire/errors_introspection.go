package wire

import "time"

// Texts of the server behind the slot _broker (spec 03 1.3).

// CodeResourceNotFound answers a read of a resource that does not exist.
const CodeResourceNotFound = -32002

// UnknownMethod answers a method a reserved slot does not serve.
func UnknownMethod(method []byte) *Error {
	return errorf(CodeMethodNotFound, "Method not found: %s", method)
}

// MissingName answers a request without a usable params.name.
func MissingName() *Error {
	return &Error{Code: CodeInvalidParams, Message: "Missing required parameter: name"}
}

// UnknownTool answers a call of a tool _broker does not have.
func UnknownTool(name string) *Error { return errorf(CodeInvalidParams, "Unknown tool: %s", name) }

// ResourceNotFound answers a request about a resource that does not exist.
func ResourceNotFound(uri string) *Error {
	return errorf(CodeResourceNotFound, "Resource not found: %s", uri)
}

// InstanceNotFound answers a tool call whose argument "uri" names no resource.
func InstanceNotFound(uri string) *Error {
	return errorf(CodeResourceNotFound, "Instance not found: %s", uri)
}

// NoInventory answers a question about slots that could not be listed in time.
func NoInventory(after time.Duration) *Error {
	return errorf(CodeUnavailable, "The slots could not be listed within %dms; the broker is overloaded or stopping, send the request again", after.Milliseconds())
}
