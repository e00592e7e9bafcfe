package remote

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// A server does not know a session any more once it has been started again, or has tidied
// up. By the protocol it answers 404; others say 410, or 400 and some words (07 row 2).

// gone reports that the server has forgotten the session the message was sent in.
func gone(err error, in session) bool {
	var status *statusError
	return in.id != "" && errors.As(err, &status) && status.gone()
}

// mayLive reports that a session was given up for words, which may have been about
// something else.
func mayLive(cause error) bool {
	var status *statusError
	return errors.As(cause, &status) && status.code == http.StatusBadRequest
}

// gone reports that the server does not know the session, and so has not looked at the
// message.
func (e *statusError) gone() bool {
	switch e.code {
	case http.StatusNotFound, http.StatusGone:
		return true
	case http.StatusBadRequest:
		return aboutSession(e.said)
	}
	return false
}

// What servers say of a session they do not know. A session with a word before it that is
// none of these ("Chat session not found") is a tool's own. Where the words of a server
// are missing here its checks fail, and the connection is made again.
var (
	sessionNames  = []string{"mcp-session-id", "session id", "session-id", "sessionid"}
	sessionFaults = []string{"no valid session", "no such session", "invalid session", "unknown session", "missing session"}
	sessionStates = []string{"not found", "expired", "terminated", "does not exist", "not initialized"} // "session ..."
	serverStates  = []string{"not initialized", "server not initialized", "server is not initialized"}
)

// aboutSession reports that a text speaks of the session of the protocol.
func aboutSession(text string) bool {
	for clause := range strings.FieldsFuncSeq(strings.ToLower(text), endsClause) {
		clause = " " + strings.TrimSpace(clause)
		for _, article := range []string{" the", " your", " this", " mcp"} {
			if strings.HasPrefix(clause, article+" ") {
				clause = clause[len(article):]
			}
		}
		holds := func(words string) bool { return strings.Contains(clause, " "+words) }
		begins := func(words string) bool { return strings.HasPrefix(clause, " "+words) }
		if slices.ContainsFunc(sessionNames, holds) || slices.ContainsFunc(sessionFaults, holds) || slices.ContainsFunc(serverStates, begins) ||
			begins("session ") && slices.ContainsFunc(sessionStates, holds) {
			return true
		}
	}
	return false
}

func endsClause(r rune) bool { return strings.ContainsRune(".:;,!?", r) }
