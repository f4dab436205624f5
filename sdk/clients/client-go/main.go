// client-go's LeaderElector on a Lease (k8s.io/client-go/tools/leaderelection), as its example uses it:
// the leader's work begins in OnStartedLeading, and ends with OnStoppedLeading or the process.
//
// Options: renew_deadline_ms, retry_period_ms; release_on_cancel (yes or no); request_timeout_ms, the
// Timeout of rest.Config (0: none, as by default).
package main

import (
	"context"
	"sync"
	"time"

	"fencepost"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const namespace = "default"

type elector struct {
	process *fencepost.Client
	leases  coordinationv1.LeasesGetter
	ctx     context.Context
	cancel  context.CancelFunc
	lock    *resourcelock.LeaseLock
	elector *leaderelection.LeaderElector
}

func open(process *fencepost.Client) (fencepost.Elector, error) {
	leases, err := coordinationv1.NewForConfig(&rest.Config{
		Host:    "http://" + process.Servers[0].Address(),
		Timeout: milliseconds(process, "request_timeout_ms", 0),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &elector{process: process, leases: leases, ctx: ctx, cancel: cancel}, nil
}

func milliseconds(process *fencepost.Client, option string, otherwise int64) time.Duration {
	return time.Duration(process.Number(option, otherwise)) * time.Millisecond
}

func (e *elector) Run(candidacy *fencepost.Candidacy) error {
	e.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: candidacy.Name, Namespace: namespace},
		Client:     e.leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: candidacy.Identity},
	}
	reign := &reign{candidacy: candidacy}
	made, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            e.lock,
		LeaseDuration:   candidacy.TTL,
		RenewDeadline:   milliseconds(e.process, "renew_deadline_ms", 2500),
		RetryPeriod:     milliseconds(e.process, "retry_period_ms", 500),
		ReleaseOnCancel: e.process.Options["release_on_cancel"] == "yes",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: reign.started,
			OnStoppedLeading: reign.stopped,
		},
	})
	if err != nil {
		return err
	}
	e.elector = made
	made.Run(e.ctx)
	return nil
}

func (e *elector) Resign() { e.cancel() }

func (e *elector) IsLeader() bool { return e.elector.IsLeader() }

// reign passes callbacks on. The library calls OnStartedLeading in a goroutine of its own, maybe after
// OnStoppedLeading; and OnStoppedLeading of a candidate that never led.
type reign struct {
	candidacy   *fencepost.Candidacy
	speaking    sync.Mutex
	begun, over bool
}

func (r *reign) started(context.Context) {
	r.speaking.Lock()
	defer r.speaking.Unlock()
	if !r.over {
		r.begun = true
		r.candidacy.Started(nil, time.Time{})
	}
}

func (r *reign) stopped() {
	r.speaking.Lock()
	defer r.speaking.Unlock()
	r.over = true
	if r.begun {
		r.candidacy.Stopped()
	}
}

func main() { fencepost.RunElector(open) }
