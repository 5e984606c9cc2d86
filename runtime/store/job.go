package store

import (
	"context"
	"fmt"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
)

// maxPayload is the longest payload of a job that is kept, in bytes.
const maxPayload = 1 << 20

// AddJob keeps a job with the change that causes it. One of its kind and key that waits
// already is the same one, and stays as it is.
func (x Tx) AddJob(j event.Job) error {
	for _, f := range []struct{ what, text string }{{"kind of a job", j.Kind}, {"key of a job", j.Key}} {
		if err := checkName(f.what, f.text); err != nil {
			return err
		}
	}
	if len(j.Payload) > maxPayload {
		return fmt.Errorf("payload of %d bytes, at most %d", len(j.Payload), maxPayload)
	}
	var from int64
	if !j.NotBefore.IsZero() {
		from = millis(j.NotBefore)
	}
	payload := j.Payload
	if payload == nil {
		payload = []byte{}
	}
	const query = `insert into job (kind, key, not_before, payload) values ($1, $2, $3, $4) on conflict (kind, key) do nothing`
	_, err := x.t.exec(query, j.Kind, j.Key, from, payload)
	return err
}

func (x Tx) addJobs(jobs []event.Job) error {
	for _, j := range jobs {
		if err := x.AddJob(j); err != nil {
			return err
		}
	}
	return nil
}

// A WaitingJob is a job that is kept.
type WaitingJob struct {
	ID int64
	event.Job
}

// maxJobs is how many jobs one question is answered with.
const maxJobs = 1000

// DueJobs returns jobs of a kind that may be done now, the one that has been due longest
// first, at most limit of them and at most 1,000.
func (x Tx) DueJobs(kind string, limit int) ([]WaitingJob, error) {
	const query = `select id, kind, key, not_before, payload from job where kind = $1 and not_before <= $2 order by not_before, id limit $3`
	var all []WaitingJob
	a := args{kind, millis(x.t.now), max(0, min(limit, maxJobs))}
	err := x.t.each(query, a, func(scan func(...any) error) error {
		var j WaitingJob
		var from int64
		err := scan(&j.ID, &j.Kind, &j.Key, &from, &j.Payload)
		if from != 0 {
			j.NotBefore = timeOf(from)
		}
		all = append(all, j)
		return err
	})
	return all, err
}

// EndJob removes a job, because it is done or because it never will be. It reports
// whether it was there.
func (x Tx) EndJob(id int64) (bool, error) {
	n, err := x.t.exec(`delete from job where id = $1`, id)
	return n == 1, err
}

// PutOffJob has a job wait for another while.
func (x Tx) PutOffJob(id int64, wait time.Duration) error {
	_, err := x.t.exec(`update job set not_before = $2 where id = $1`, id, millis(x.t.now.Add(wait)))
	return err
}

// DueJobs is [Tx.DueJobs] in a view of its own.
func (d *DB) DueJobs(ctx context.Context, kind string, limit int) (all []WaitingJob, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.DueJobs(kind, limit)
		return err
	})
	return all, err
}

// EndJob is [Tx.EndJob] in a change of its own.
func (d *DB) EndJob(ctx context.Context, id int64) (was bool, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		was, err = tx.EndJob(id)
		return err
	})
	return was && err == nil, err
}
