// etcd's own lock for Go (clientv3/concurrency) as a client of fencepost, used as its documentation
// describes, with one addition. A Session is kept alive in the background and reports no deadline;
// it may report its end half a second late. So a holder asks how long its lease still runs, and
// counts on no more than that.
//
// Options: wait_ms, how long an acquire waits for its turn (10000).
package main

import (
	"context"
	"time"

	"fencepost"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

// lock is one client with its session, by which its keys live.
type lock struct {
	process *fencepost.Client
	wait    time.Duration
	client  *clientv3.Client
	session *concurrency.Session
	held    *concurrency.Mutex
}

func open(process *fencepost.Client) (fencepost.Lock, error) {
	wait := time.Duration(process.Number("wait_ms", 10_000)) * time.Millisecond
	endpoints := []string{}
	for _, server := range process.Servers {
		endpoints = append(endpoints, server.Address())
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: time.Second})
	if err != nil {
		return nil, err
	}
	return &lock{process: process, wait: wait, client: client}, nil
}

// renewed makes a session if there is none, or the last one has ended.
func (l *lock) renewed(ttl time.Duration) error {
	if l.session != nil {
		select {
		case <-l.session.Done():
		default:
			return nil
		}
	}
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(ttl.Seconds())))
	if err != nil {
		return err
	}
	l.session = session
	go func() {
		<-session.Done()
		l.process.Lost("", "the session is over")
	}()
	return nil
}

func (l *lock) Acquire(name string, ttl time.Duration) (*fencepost.Grant, error) {
	if err := l.renewed(ttl); err != nil {
		return nil, fencepost.Failed{Text: "no session: " + err.Error(), Kind: "unreachable"}
	}
	mutex := concurrency.NewMutex(l.session, "/fencepost/"+name)
	ctx, cancel := context.WithTimeout(l.client.Ctx(), l.wait)
	defer cancel()
	if err := mutex.Lock(ctx); err != nil {
		return nil, err
	}
	asked := time.Now()
	lease, err := l.client.TimeToLive(ctx, l.session.Lease())
	if err != nil {
		return nil, err
	}
	l.held = mutex
	return &fencepost.Grant{
		Token:    fencepost.Token(mutex.Header().Revision),
		Deadline: asked.Add(time.Duration(lease.TTL) * time.Second),
	}, nil
}

func (l *lock) Release(string) error {
	ctx, cancel := context.WithTimeout(l.client.Ctx(), l.wait)
	defer cancel()
	return l.held.Unlock(ctx)
}

// Close revokes the session's lease. A server that cannot be reached keeps it until it expires.
func (l *lock) Close() error {
	defer l.client.Close()
	if l.session == nil {
		return nil
	}
	return l.session.Close()
}

func main() { fencepost.Run(open) }
