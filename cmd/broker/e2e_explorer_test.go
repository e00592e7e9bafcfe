package main_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// explorer is the official TypeScript client, line by line.
type explorer struct {
	*nodePeer
	heard []event // notifications nobody has asked for yet
}

func startExplorer(t *testing.T) *explorer {
	t.Helper()
	return &explorer{nodePeer: startNode(t, "explorer.mjs")}
}

// object is a JSON object.
type object = map[string]any

// ask has one method of the client called and returns what came of it, without
// its event and method.
func (x *explorer) ask(method string, params object) event {
	x.t.Helper()
	if params == nil {
		params = object{}
	}
	line, err := json.Marshal(params)
	if err != nil {
		x.t.Fatal(err)
	}
	x.tell(method + " " + string(line))
	for {
		e := x.next()
		if e["event"] == "notification" {
			x.heard = append(x.heard, e)
			continue
		}
		if e["method"] != method {
			x.t.Fatalf("the client reports %v, want what came of %s", e, method)
		}
		delete(e, "event")
		delete(e, "method")
		return e
	}
}

// result is ask for what must succeed.
func (x *explorer) result(method string, params object) object {
	x.t.Helper()
	answer := x.ask(method, params)
	result, ok := answer["result"].(object)
	if !ok {
		x.t.Fatalf("%s %v comes to %v", method, params, answer)
	}
	return result
}

// refused compares the error a call comes to.
func (x *explorer) refused(method string, params object, code int, message string) {
	x.t.Helper()
	want := event{"code": float64(code), "message": message}
	if diff := cmp.Diff(want, x.ask(method, params)); diff != "" {
		x.t.Errorf("%s %v (-want +got):\n%s", method, params, diff)
	}
}

// notified waits for a notification; others are kept for later.
func (x *explorer) notified(method string, params object) {
	x.t.Helper()
	want := event{"event": "notification", "method": method, "params": params}
	for {
		for i, e := range x.heard {
			if reflect.DeepEqual(e, want) {
				x.heard = slices.Delete(x.heard, i, i+1)
				return
			}
		}
		e := x.next()
		if e["event"] != "notification" {
			x.t.Fatalf("the client reports %v, want the notification %s", e, method)
		}
		x.heard = append(x.heard, e)
	}
}

// names lists a member of each item of a list.
func (x *explorer) names(method, list, member string) []string {
	x.t.Helper()
	return names(x.result(method, nil), list, member)
}

func names(result object, list, member string) []string {
	found := []string{}
	items, _ := result[list].([]any)
	for _, item := range items {
		name, _ := item.(object)[member].(string)
		found = append(found, name)
	}
	return found
}
