package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrEnded is why the context of a request ends whose token was revoked or has expired, or
// that came without one before there was any.
var ErrEnded = errors.New("what let the request in is good no more")

// A knock is a request that says within who sent it.
type knock struct {
	door *Door
	from string
	end  context.CancelCauseFunc
	tie  sync.Once // to the token, which may be shown again
}

type knockKey struct{}

// mayWait reports whether a request without a token may say later who sent it.
func (d *Door) mayWait(r *http.Request) bool {
	return r.URL.RawPath == "" && slices.Contains(d.o.Later, r.URL.Path) && r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// wait lets a request in that has yet to say who sent it: [From] knows nobody.
func (d *Door) wait(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, knockKey{}, &knock{door: d, from: r.RemoteAddr, end: end})))
}

// Knock says who sent the request that ctx belongs to, which came in at one of
// [Options.Later] without a token, and has brought this one now. From then on the request
// lives as long as the token is good; it may be shown again, and no other. ok is false if nobody has it: also for a request that
// came in with a token, or where none is needed, which [From] tells of.
func Knock(ctx context.Context, token string) (who Identity, ok bool) {
	k, waits := ctx.Value(knockKey{}).(*knock)
	if !waits {
		return Identity{}, false
	}
	found, err := k.door.keys.find(token)
	if err != nil {
		k.door.o.Refused(err.Error())
		if _, first := k.door.strikes.add(k.from); first {
			k.door.o.Logger.WarnContext(ctx, "many wrong tokens came from one address", "from", sourceOf(k.from), "within", FailureWindow)
		}
		return Identity{}, false
	}
	k.tie.Do(func() {
		end := func() { k.end(ErrEnded) }
		revoked := context.AfterFunc(found.gone, end)
		context.AfterFunc(ctx, func() { revoked() })
		if !found.Expires.IsZero() {
			expired := time.AfterFunc(found.Expires.Sub(k.door.keys.now()), end)
			context.AfterFunc(ctx, func() { expired.Stop() })
		}
	})
	return found.identity(), true
}
