// A lock that does what the lock's name says.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"fencepost"
)

type puppet struct{ client *fencepost.Client }

func (p *puppet) Acquire(name string, ttl time.Duration) (*fencepost.Grant, error) {
	switch name {
	case "lost-at-once":
		p.client.Lost("", "its session ended")
		p.client.Lost("another", "not this one's")
	case "no", "nothing":
		return nil, nil
	case "token":
		return &fencepost.Grant{Token: fencepost.Token(1<<60 + 1)}, nil
	case "short":
		return &fencepost.Grant{Deadline: time.Now().Add(ttl / 2)}, nil
	case "over":
		return &fencepost.Grant{Deadline: time.Now().Add(-time.Second).Round(0)}, nil
	case "woken":
		return &fencepost.Grant{Wakeups: fencepost.Wakeups(2)}, nil
	case "endless":
		return &fencepost.Grant{NoDeadline: true}, nil
	case "failed":
		return nil, fencepost.Failed{Text: "somebody else has it"}
	case "no-quorum":
		return nil, fmt.Errorf("%w", &fencepost.Failed{Text: "two of five", Kind: "no-quorum"})
	case "timeout":
		return nil, fencepost.Indeterminate{Text: "no reply"}
	case "raises":
		return nil, errors.New("what now")
	case "exit":
		fmt.Fprintln(os.Stderr, "enough")
		os.Exit(1)
	}
	return &fencepost.Grant{}, nil
}

func (p *puppet) Extend(name string, ttl time.Duration) (*fencepost.Grant, error) {
	if name == "renewed" {
		p.client.Renewed(name, time.Now().Add(3*time.Second))
		p.client.Lost(name, "its lease ran out")
	}
	if name == "not-extended" {
		return nil, nil
	}
	return &fencepost.Grant{}, nil
}

func (p *puppet) Release(name string) error {
	switch name {
	case "not-released":
		return fencepost.Failed{Text: "the lock said no"}
	case "release-raises":
		return errors.New("what now")
	}
	return nil
}

func (p *puppet) Close() error {
	fmt.Println("closed")
	if p.client.Options["close"] == "raises" {
		return errors.New("no such socket")
	}
	return nil
}

func main() {
	fencepost.Run(func(client *fencepost.Client) (fencepost.Lock, error) {
		fmt.Println("made for", client.Servers, client.Number("retries", 0), client.Seed)
		if client.Options["mute"] == true {
			return nil, errors.New("no server answers")
		}
		return &puppet{client}, nil
	}, "fifo", "one_wakeup")
}
