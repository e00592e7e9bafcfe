package mcpbroker

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// What of a name, of a variable, an argument or a header, says that its value is not to
// be shown: a word in it, or the word it ends with.
const (
	secretWord = `(?:token|secret|passw|passphrase|pwd|(?:api|private|access)[-_]?key|credential|cookie|auth(?:[^o]|oriz|$))`
	secretEnd  = `(?:keys?|pat|dsn|pass)`
)

var (
	secretVariable = regexp.MustCompile(`(?i)` + secretWord + `|(?:^|[-_.])` + secretEnd + `$`)
	// secretFlag is such a name alone: the next argument is its value.
	secretFlag = regexp.MustCompile(`(?i)^-(?:.*` + secretWord + `.*|(?:.*[-_.])?` + secretEnd + `)$`)
	// secretValue is a name with its value, as --token=x, API_KEY=x, Authorization: x or
	// in a query.
	secretValue = regexp.MustCompile(`(?is)(\b[\w-]*` + secretWord + `[\w-]*(?:=|:\s*)|\b(?:[\w-]*[-_])?` + secretEnd + `(?:=|:\s*)|\b(?:bearer|basic)\s+)(.+)`)
	// secretUser is the password in a URL, or a user that may be one.
	secretUser = regexp.MustCompile(`(://[^/\s:@]*:)([^\s]*)@|(://)([^/\s:@]{16,})@`)
	// portAhead is what looks like a password, in a URL that has none.
	portAhead = regexp.MustCompile(`^[0-9]{1,5}/`)
	// secretShape is a value that says itself that it is a secret.
	secretShape = regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|sk-|[spr]k_(?:live|test)_|xox[abeoprs]-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|hf_|dop_v1_|SG\.|eyJ)[\w.-]{8,}`)
	variable    = regexp.MustCompile(`\$\{[^}]*\}`)
)

// notSecret are variables with a name like that of a secret.
var notSecret = map[string]bool{"PWD": true, "OLDPWD": true, "SSH_AUTH_SOCK": true}

func secretName(name string) bool {
	return secretVariable.MatchString(name) && !notSecret[strings.ToUpper(name)]
}

// secretsIn are the secrets in the value of a variable: all of it if its name says so,
// the password of a URL, and what has the shape of one.
func secretsIn(name, value string) []string {
	var secrets []string
	if secretName(name) {
		secrets = append(secrets, value)
	}
	for _, m := range secretUser.FindAllStringSubmatch(value, -1) {
		password := m[2] + m[4]
		if portAhead.MatchString(password) {
			continue
		}
		secrets = append(secrets, value, password)
		if plain, err := url.PathUnescape(password); err == nil {
			secrets = append(secrets, plain)
		}
	}
	return append(secrets, secretShape.FindAllString(value, -1)...)
}

// maskedCommand is a command line fit to be shown: variables stand for themselves, and
// what looks like a secret is left out.
func maskedCommand(command string, args []string) string {
	shown := []string{maskedArg(command, false)}
	hide := false
	for _, arg := range args {
		shown = append(shown, maskedArg(arg, hide))
		hide = !strings.ContainsRune(arg, '=') && secretFlag.MatchString(arg)
	}
	return strings.Join(shown, " ")
}

// maskedArg is an argument fit to be shown, all of which is a secret with hide.
func maskedArg(arg string, hide bool) string {
	var v variables
	arg = v.takeOut(arg)
	if hide {
		return v.putBack(v.value(arg))
	}
	arg = secretUser.ReplaceAllStringFunc(arg, func(user string) string {
		m := secretUser.FindStringSubmatch(user)
		if portAhead.MatchString(m[2]) {
			return user
		}
		return m[1] + m[3] + v.value(m[2]+m[4]) + "@"
	})
	arg = secretShape.ReplaceAllString(arg, "***")
	arg = secretValue.ReplaceAllStringFunc(arg, func(pair string) string {
		m := secretValue.FindStringSubmatch(pair)
		return m[1] + v.value(m[2])
	})
	return v.putBack(arg)
}

// variables are the ${NAME} of an argument, taken out of it while it is looked at. In
// their places stand their numbers, between signs that no argument can hold.
type variables struct {
	all    []string
	strict bool // their defaults are secrets
}

var (
	place     = regexp.MustCompile("\x00[0-9]+\x00")
	placesAll = regexp.MustCompile("^(?i:bearer |basic |token )?(?:\x00[0-9]+\x00[-/:@.]?)+$")
)

func (v *variables) takeOut(arg string) string {
	arg = strings.ReplaceAll(arg, "\x00", "")
	return variable.ReplaceAllStringFunc(arg, func(text string) string {
		v.all = append(v.all, text)
		return "\x00" + strconv.Itoa(len(v.all)-1) + "\x00"
	})
}

// value is a secret fit to be shown: it is, when variables are all there is.
func (v *variables) value(secret string) string {
	v.strict = true
	if placesAll.MatchString(secret) {
		return secret
	}
	return "***"
}

func (v *variables) putBack(arg string) string {
	return place.ReplaceAllStringFunc(arg, func(place string) string {
		n, err := strconv.Atoi(strings.Trim(place, "\x00"))
		if err != nil {
			return "***"
		}
		text := v.all[n]
		name, _, hasDefault := strings.Cut(text[2:len(text)-1], ":-")
		if hasDefault && (v.strict || secretName(name)) {
			return "${" + name + ":-***}"
		}
		return text
	})
}

// maskedURL is a URL fit to be shown: without user, query and fragment. It may
// hold ${NAME}, so it is not parsed.
func maskedURL(raw string) string {
	shown, _, _ := strings.Cut(raw, "#")
	shown, query, _ := strings.Cut(shown, "?")
	if scheme, rest, ok := strings.Cut(shown, "://"); ok {
		authority, path, slash := strings.Cut(rest, "/")
		authority = authority[strings.LastIndexByte(authority, '@')+1:]
		shown = scheme + "://" + authority
		if slash {
			shown += "/" + path
		}
	}
	if query != "" {
		shown += "?***"
	}
	return shown
}
