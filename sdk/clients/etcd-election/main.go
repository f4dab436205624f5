// etcd's Election (go.etcd.io/etcd/clientv3/concurrency), on a session whose lease its client keeps alive.
// The token is the revision of the leader's key. The library tells of the end of a leader's session by
// the session's Done, which an application has to listen to.
//
// Options: listens (yes or no), whether the application stops at Done; dial_timeout_ms.
package main

import (
	"context"
	"sync"
	"time"

	"fencepost"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

type elector struct {
	process  *fencepost.Client
	client   *clientv3.Client
	resigned chan struct{}
	once     sync.Once
}

func open(process *fencepost.Client) (fencepost.Elector, error) {
	endpoints := make([]string, len(process.Servers))
	for n, server := range process.Servers {
		endpoints[n] = server.Address()
	}
	timeout := time.Duration(process.Number("dial_timeout_ms", 1000)) * time.Millisecond
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: timeout})
	if err != nil {
		return nil, err
	}
	return &elector{process: process, client: client, resigned: make(chan struct{})}, nil
}

func (e *elector) Run(candidacy *fencepost.Candidacy) error {
	defer e.client.Close()
	session, err := concurrency.NewSession(
		e.client, concurrency.WithTTL(int(candidacy.TTL/time.Second)),
	)
	if err != nil {
		return err
	}
	election := concurrency.NewElection(session, "/fencepost/"+candidacy.Name)
	if err := election.Campaign(e.client.Ctx(), candidacy.Identity); err != nil {
		return err
	}
	candidacy.Started(fencepost.Token(election.Rev()), time.Time{})
	over := session.Done()
	if e.process.Options["listens"] == "no" {
		over = nil
	}
	select {
	case <-over:
		candidacy.Stopped()
	case <-e.resigned:
		candidacy.Stopped()
		ctx, cancel := context.WithTimeout(e.client.Ctx(), candidacy.TTL)
		defer cancel()
		return election.Resign(ctx)
	}
	return nil
}

func (e *elector) Resign() { e.once.Do(func() { close(e.resigned) }) }

func main() { fencepost.RunElector(open) }
