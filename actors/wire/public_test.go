package wire

import (
	"errors"
	"fmt"
	"testing"
)

// What clients are told of an error names no place of the machine.
func TestPublic(t *testing.T) {
	secret := &Confidential{Err: errors.New(`command "x" was not found in PATH (/usr/local/bin:/opt/x/bin)`), Public: "its command was not found"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{secret, "its command was not found"},
		{fmt.Errorf("attempt 1: %w; again later", secret), "attempt 1: its command was not found; again later"},
		{errors.New("it exited with code 1"), "it exited with code 1"},
		{errors.New(`command "/srv/app/server" does not exist`), `command ".../server" does not exist`},
		{errors.New("the file /srv/keys/token cannot be read"), "the file .../token cannot be read"},
		{errors.New("open '/srv/my files/a b.json': no such file"), "open '.../a b.json': no such file"},
		{errors.New("at main (/srv/app/index.js:12:3)"), "at main (.../index.js:12:3)"},
		{errors.New("at file:///srv/app/index.js:12:3"), "at file:.../index.js:12:3"},
		{errors.New("PATH=/usr/bin:/opt/x/bin:/bin"), "PATH=.../bin:.../bin:/bin"},
		{errors.New("/srv/data/ is full"), ".../data/ is full"},
		{errors.New(`open C:\Users\me\key.pem: denied, D:/x/y.txt too, C:\x not`), `open ...\key.pem: denied, .../y.txt too, C:\x not`},
		{errors.New("Cannot POST /mcp; / and // are no paths"), "Cannot POST /mcp; / and // are no paths"},
		{errors.New("tools/list failed for text/html in ./a/b, ~/c/d and @scope/e/f"), "tools/list failed for text/html in ./a/b, ~/c/d and @scope/e/f"},
		{errors.New("get https://me:pw@far.example/a/b?key=s#f: refused"), "get https://far.example/a/b?***: refused"},
		{errors.New("get https://me:p@w@far.example?key=s"), "get https://far.example?***"},
		{errors.New("see https://far.example/a/b, ws://far.example and mailto://"), "see https://far.example/a/b, ws://far.example and mailto://"},
		{errors.New("an unclosed '/srv/x/y z"), "an unclosed '.../y z"},
		{errors.New("dé'/srv/é/ü'"), "dé'.../ü'"},
	} {
		if got := Public(c.err); got != c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.err, got, c.want)
		}
	}
	if !errors.Is(fmt.Errorf("x: %w", secret), secret.Err) {
		t.Error("the whole error is not found by errors.Is")
	}
}

func FuzzPublic(f *testing.F) {
	f.Add("a /b/c 'd/e' https://u:p@h/x?y#z C:\\x\\y file:///a/b")
	f.Fuzz(func(t *testing.T, text string) {
		short := withoutPlaces(text)
		if again := withoutPlaces(short); again != short {
			t.Errorf("%q is shortened to %q and then to %q", text, short, again)
		}
	})
}
