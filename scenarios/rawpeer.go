package scenarios

import "context"

// rawLink is a provider whose every frame is the script's.
type rawLink struct{ socket }

func (l *rawLink) open(ctx context.Context, p *peer) {
	l.socket.open(ctx, p.emit, func(text []byte) {
		p.show(p.id + ": received " + excerpt(string(text)))
		p.frames.add(frameOf(text))
	})
}

func (l *rawLink) send(ctx context.Context, frame []byte) error { return l.write(ctx, frame) }

func (l *rawLink) answersPings() bool { return false }

// excerpt is the beginning of a long text.
func excerpt(text string) string {
	const most = 300
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "..."
	}
	return text
}
