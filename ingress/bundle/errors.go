package bundle

import (
	"errors"
	"fmt"
)

// The kinds of refusal, for errors.Is.
var (
	// ErrNotFound: the bundle, its signature or the public key does not exist.
	ErrNotFound = errors.New("file not found")
	// ErrUnreadable: one of them cannot be read.
	ErrUnreadable = errors.New("file cannot be read")
	// ErrKey: a key file holds no usable key.
	ErrKey = errors.New("unusable key")
	// ErrSignature: nothing vouches for the bundle.
	ErrSignature = errors.New("signature refused")
	// ErrArchive: the file is no ZIP archive, or a corrupt or hostile one.
	ErrArchive = errors.New("archive refused")
	// ErrLimit: the bundle is larger than Limits allow.
	ErrLimit = errors.New("limit exceeded")
	// ErrManifest: manifest.json is missing, or does not say how to start the server.
	ErrManifest = errors.New("manifest refused")
	// ErrUserConfig: a value the bundle asks its user for is missing or wrong.
	ErrUserConfig = errors.New("user configuration refused")
	// ErrWrite: a file or directory cannot be written.
	ErrWrite = errors.New("cannot write")
)

// Error says why a bundle is refused. errors.Is finds its Kind, one of the Err
// variables of this package, and what is behind Err.
type Error struct {
	Kind error
	Name string // slot of the bundle, may be empty
	Text string // what is wrong, without values of the user
	Err  error  // the cause, may be nil
}

// Error gives the sentence of spec 03 4.3 for the bundle of a slot, else the text.
func (e *Error) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("mcpb bundle %q: %s, bundle refused.", e.Name, e.Text)
	}
	return e.Text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// refusal is an error whose text stands for itself.
func refusal(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// causedBy adds a cause that the text does not repeat.
func (e *Error) causedBy(cause error) *Error {
	e.Err = cause
	return e
}

// because is an error with the text of its cause at the end.
func because(kind, cause error, format string, args ...any) *Error {
	return refusal(kind, "%s: %v", fmt.Sprintf(format, args...), cause).causedBy(cause)
}

// named puts the slot into a refusal; other errors, such as that of an ended
// context, stay.
func named(name string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Name = name
	}
	return err
}
