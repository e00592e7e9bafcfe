package firmware

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"mcpbroker/brokertest"
)

// randomJSON is any JSON value, with the names that matter in it.
func randomJSON(r *rand.Rand, depth int) string {
	names := []string{"id", "method", "params", "name", "text", "_meta", `a\"b`, `\u0069d`, "x}y]", ""}
	kind := r.IntN(8)
	if depth == 0 {
		kind = r.IntN(6)
	}
	switch kind {
	case 0:
		return strconv.Itoa(r.IntN(2000) - 1000)
	case 1:
		return []string{"true", "false", "null", "-1.5e+30"}[r.IntN(4)]
	case 2, 3, 4, 5:
		text, _ := json.Marshal(names[r.IntN(len(names))] + []string{"", `"`, `\`, "{", "ä", "\n"}[r.IntN(6)])
		return string(text)
	case 6:
		var items []string
		for range r.IntN(4) {
			items = append(items, randomJSON(r, depth-1))
		}
		return "[" + strings.Join(items, " , ") + "]"
	}
	var members []string
	for range r.IntN(5) {
		members = append(members, `"`+names[r.IntN(len(names))]+`" :`+randomJSON(r, depth-1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// D-16, as a property: whatever else is in a message, and in whatever order, the id
// and the method that count are those of the message itself.
func TestSurfaceRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	s := listen(t)
	startDevice(t, s.port(), "--name", "d", "--rx=65536", "--quiet")
	p := s.serve("/provider/d")
	for i := range 500 {
		id := strconv.Itoa(i)
		if r.IntN(2) == 0 {
			id = fmt.Sprintf(`"brk-%d{\"id\":0}"`, i)
		}
		members := []string{`"id":` + id, ` "method" : "ping" `, `"params":` + randomJSON(r, 5), `"other":` + randomJSON(r, 5)}
		r.Shuffle(len(members), func(a, b int) { members[a], members[b] = members[b], members[a] })
		message := "{" + strings.Join(members, ",") + "}"
		p.write(frame(fin|opText, message))
		brokertest.Equal(t, fmt.Sprintf("seed %d: %s", seed, message), p.text(), pong(id))
	}
}

// Whatever becomes of a message on its way, the device goes on.
func TestSurfaceDamaged(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	s := listen(t)
	startDevice(t, s.port(), "--name", "pump-1", "--rx=65536", "--quiet")
	p := s.serve("/provider/pump-1")
	whole := `{"jsonrpc":"2.0","id":"x","method":"tools\/call","params":{"name":"echo","arguments":{"text":"\u00e4\\"},"_meta":{"traceparent":"00"}}}`
	const signs = `{}[]",:\u09az.-+ e` + "\n\x00"
	for i := range 1000 {
		damaged := []byte(whole)
		for range 1 + r.IntN(4) {
			damaged[r.IntN(len(damaged))] = signs[r.IntN(len(signs))]
		}
		damaged = damaged[:len(damaged)-r.IntN(2)*r.IntN(len(damaged))]
		last := strconv.Itoa(i)
		p.write(frame(fin|opText, string(damaged)) + frame(fin|opText, ping(last)))
		for answer := p.text(); answer != pong(last); answer = p.text() {
			if !json.Valid([]byte(answer)) && json.Valid(damaged) {
				t.Fatalf("seed %d: %s\nis answered with\n%s", seed, damaged, answer)
			}
		}
	}
}
