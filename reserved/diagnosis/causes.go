package diagnosis

import (
	"fmt"
	"regexp"
	"strings"

	"mcpbroker/actors/msg"
)

// Why an upstream is down is told in words, by its driver or by the server it is. Each
// cause that can be told from the others has a fix of its own.

// cause is one of them.
type cause struct {
	of  func(*msg.Instance) bool // the kinds it is of
	is  func(text string) bool   // the error it is told by
	fix func(d *diagnosis, i *msg.Instance) string
}

// fixOf says what to do about an upstream that is down.
func (d *diagnosis) fixOf(i *msg.Instance) string {
	if i.Cause == msg.CauseSlot {
		return slotTaken(d, i) + tryNow(i)
	}
	if i.Cause == msg.CauseEnded {
		return whyItEnds(i)
	}
	for _, c := range causes {
		if c.of(i) && c.is(i.Error) {
			return c.fix(d, i) + tryNow(i)
		}
	}
	return whyItEnds(i)
}

// tryNow ends a fix.
func tryNow(i *msg.Instance) string {
	return fmt.Sprintf(" To have it tried at once, whatever the schedule, run %s.", command("restart", i.Slot))
}

// causes in the order in which they are looked for.
var causes = []cause{
	{isProcess, begins(`command "`), unknownCommand},
	{isProcess, begins("its directory "), unusableDirectory},
	{isBundle, both("bundle refused", "user_config"), wrongAnswers},
	{isBundle, both("bundle refused", "bundle file not found at"), bundleAway},
	{isBundle, both("bundle refused", "signature file not found at"), unsigned},
	{isBundle, both("bundle refused", "public key file not found at"), unusableKey},
	{isBundle, both("bundle refused", "key at"), unusableKey},
	{isBundle, holds("bundle refused"), refusedBundle},
	{isProcess, holds("is not JSON-RPC"), talkative},
	{isProcess, holds("did not answer initialize within"), silentProcess},

	{isRemote, holds("this broker's own address"), ownAddress},
	{isRemote, holds("HTTP response to HTTPS client", "HTTP request to an HTTPS server", "does not look like a TLS handshake"), wrongScheme},
	{isRemote, holds("invalid header field"), wrongHeader},
	{isRemote, holds("x509:", "certificate"), untrusted},
	{isRemote, holds(" is not known"), unknownHost},
	{isRemote, status(300, 399), moved},
	{isRemote, status(500, 599), failing},
	{isRemote, status(429, 429), failing},
	{isRemote, answered, otherServer},
	{isRemote, holds("did not answer initialize within"), silentServer},
}

func isRemote(i *msg.Instance) bool { return !isProcess(i) }
func isBundle(i *msg.Instance) bool { return i.Kind == "bundle" }

func begins(with string) func(string) bool {
	return func(text string) bool { return strings.HasPrefix(text, with) }
}

// holds is true of a text with any of the parts.
func holds(parts ...string) func(string) bool {
	return func(text string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
}

// both is true of a text with both parts.
func both(one, other string) func(string) bool {
	return func(text string) bool { return strings.Contains(text, one) && strings.Contains(text, other) }
}

var httpStatus = regexp.MustCompile(`\bHTTP (\d{3})\b`)

// status is true of an HTTP status from the one to the other.
func status(from, to int) func(string) bool {
	return func(text string) bool {
		m := httpStatus.FindStringSubmatch(text)
		if m == nil {
			return false
		}
		code := int(m[1][0]-'0')*100 + int(m[1][1]-'0')*10 + int(m[1][2]-'0')
		return from <= code && code <= to
	}
}

// answered is true where a server said something that is not MCP.
func answered(text string) bool {
	return httpStatus.MatchString(text) || holds("it did not take initialize", "not valid JSON", "event stream", "endpoint")(text)
}

func slotTaken(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("A provider that came by itself holds the slot: 'broker describe slot %s' tells since when. Give %s of broker.toml another name, or end that provider; %s.",
		argument(i.Slot), entry(i), takenOver)
}

func unknownCommand(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("Nothing was run, so there is no output to look at. In %s of broker.toml, let command be the name of a program that is in the PATH the error names, or its full path; "+
		"its arguments do not belong there but into args, one string each. A program that is not installed has to be, for the user the broker runs as. %s.", entry(i), upperFirst(takenOver))
}

func unusableDirectory(_ *diagnosis, i *msg.Instance) string {
	if isBundle(i) {
		return "Nothing was run, so there is no output to look at. See that the user the broker runs as may enter the directory that the error names."
	}
	return fmt.Sprintf("Nothing was run, so there is no output to look at. Create the directory that the error names, or set cwd in %s of broker.toml to one that exists; a relative one starts from the directory of broker.toml. %s.",
		entry(i), upperFirst(takenOver))
}

func wrongAnswers(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The file itself is in order. Correct userConfig in %s of broker.toml: the error names the value that is missing, unknown or out of range. "+
		"Run 'broker bundle inspect %s' to see which values the bundle asks for and what they may be. %s.", entry(i), argument(i.Target), upperFirst(takenOver))
}

func bundleAway(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("Put the bundle where the error says, or set path in %s of broker.toml to where it is; a relative path starts from the directory of broker.toml. %s.",
		entry(i), upperFirst(takenOver))
}

func unsigned(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("No signature is in the bundle, and none beside it. Get the signature file from whoever made the bundle and put it where the error says, or set signature in %s of broker.toml. "+
		"One of your own is signed with 'broker bundle sign %s --key FILE'. %s.", entry(i), argument(i.Target), upperFirst(takenOver))
}

func unusableKey(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The bundle has not been looked at. Let publicKey in %s of broker.toml name the PEM file with the public key, or the certificate, of whoever signed it. %s.",
		entry(i), upperFirst(takenOver))
}

func refusedBundle(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The file is not taken as it is. Run 'broker bundle verify %s' with the publicKey of the entry as --public-key: it tells more. "+
		"Get the file anew from whoever made it; if it is signed with another key, set publicKey in %s of broker.toml. %s.", argument(i.Target), entry(i), upperFirst(takenOver))
}

func talkative(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("What a server writes to standard output has to be JSON-RPC, one message a line; everything else belongs to standard error. "+
		"See that its command line starts the MCP server over stdio and not its help, a login or an HTTP server: %s. "+
		"Where a wrapper such as npx or a shell profile prints, silence it. The arguments are set in %s of broker.toml; %s.", i.Target, entry(i), takenOver)
}

func silentProcess(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("It runs and says nothing. See that its command line starts the MCP server over stdio and not one that listens on a port: %s. "+
		"Run %s for what it writes to standard error. One that needs longer, for a download at its first start say, gets startTimeoutSeconds in %s of broker.toml; %s.",
		i.Target, command("logs", i.Slot), entry(i), takenOver)
}

func ownAddress(d *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("Take %s out of broker.toml, or set its url to the server that is meant: this broker serves its slots already, each at %s/<slot>%s, and all together at %s. %s.",
		entry(i), d.base(), d.Broker.Paths.MCP, d.mcpURL("_all"), upperFirst(takenOver))
}

func wrongScheme(_ *diagnosis, i *msg.Instance) string {
	right, wrong := "https:// (or wss://)", "http:// (or ws://)"
	if strings.Contains(i.Error, "to HTTPS client") || strings.Contains(i.Error, "look like a TLS") {
		right, wrong = wrong, right
	}
	return fmt.Sprintf("The server answers, in the other protocol: in %s of broker.toml, let url begin with %s instead of %s. %s.", entry(i), right, wrong, upperFirst(takenOver))
}

func wrongHeader(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("Nothing was sent. Correct headers in %s of broker.toml: the error names the header. A value that comes from a variable or a file must not hold a line break. %s; "+
		"a variable of the environment is read at the start of the broker.", entry(i), upperFirst(takenOver))
}

func untrusted(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The server answers, and its certificate is not trusted here. If it was issued by a private authority, install that authority's certificate on this machine, or name its file in SSL_CERT_FILE, and restart the broker. "+
		"If the certificate is for another name, set url in %s of broker.toml to that name; %s.", entry(i), takenOver)
}

func unknownHost(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("No address was found for the host, so nothing was sent. Correct url in %s of broker.toml, or see that the name can be resolved on this machine; %s.", entry(i), takenOver)
}

func moved(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The server answers that it is to be found elsewhere, which the broker follows only within the same origin, and with 307 and 308. "+
		"Set url in %s of broker.toml to the last address: open %s with 'curl -i' and read Location. A redirect to a page for a login means that headers or oauth are missing. %s.",
		entry(i), i.Target, upperFirst(takenOver))
}

func failing(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The server answers, and says that it cannot serve at present: read its own log, and that of a proxy in front of it. Nothing has to be set here; it is tried again by itself. Its address is %s.", i.Target)
}

func otherServer(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The server was reached and answered, but not as an MCP server does. Correct %s of broker.toml: url has to be the whole address of the endpoint, its path included (often /mcp, or /sse for the older transport); "+
		"transport is streamable-http, sse or websocket, as the server's documentation says; headers or oauth where it wants to know who asks. Its address is %s. %s.",
		entry(i), i.Target, upperFirst(takenOver))
}

func silentServer(_ *diagnosis, i *msg.Instance) string {
	return fmt.Sprintf("The server takes the connection and does not answer: read its own log, and see that %s is the address of an MCP server and that transport fits it. "+
		"One that needs longer gets startTimeoutSeconds in %s of broker.toml; %s.", i.Target, entry(i), takenOver)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
