package main

import (
	"context"
	"net/http"

	"github.com/hutch-run/hutch/host/trackerproxy"
	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	// trackerLoanPath is where an owner asks its tracker for a command beside it.
	trackerLoanPath = "/control/v1/tracker"
	// maxTrackerLoan is the largest message there: an answer of the tracker in base64.
	maxTrackerLoan = 32 << 20
)

// lendTracker answers at trackerLoanPath.
func (a *App) lendTracker(w http.ResponseWriter, r *http.Request) {
	lend(w, r, maxTrackerLoan, a.newProxy().Serve)
}

// A trackerBorrower asks the tracker of whoever owns the state folder.
type trackerBorrower struct{ *borrower }

// Serve implements [gate.Tracker].
func (b trackerBorrower) Serve(ctx context.Context, a trackerproxy.Access, r abi.Request) abi.Response {
	return b.serve(ctx, r, errand{"the tracker cannot be reached now", "who has the tracker does not answer", func(ctx context.Context) (abi.Response, error) {
		return b.borrow(ctx, trackerLoanPath, loan[trackerproxy.Access]{a, r.Op, r.Body}, maxTrackerLoan)
	}, func(ctx context.Context) (_ abi.Response, err error) {
		if b.tracker == nil {
			if b.tracker, err = openEmbedded(ctx, b.cfg, b.db, b.log); err != nil {
				return abi.Response{}, err
			}
		}
		return trackerproxy.New(trackerproxy.Options{Account: b.tracker.account, Logger: b.log}).Serve(ctx, a, r), nil
	}})
}
