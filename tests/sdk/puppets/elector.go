// An elector that does what the election's name says.
package main

import (
	"errors"
	"time"

	"fencepost"
)

type elector struct{ resigned chan struct{} }

func (e *elector) Run(candidacy *fencepost.Candidacy) error {
	switch candidacy.Name {
	case "refused":
		return errors.New("no server answers")
	case "never":
		select {}
	case "stops-first":
		candidacy.Stopped()
	case "over":
		candidacy.Started(nil, time.Now().Add(-time.Second))
	case "renewed":
		candidacy.Started(fencepost.Token(7), time.Now().Add(candidacy.TTL))
		candidacy.Renewed(time.Now().Add(2 * candidacy.TTL))
	default:
		candidacy.Started(nil, time.Time{})
	}
	switch candidacy.Name {
	case "twice":
		candidacy.Started(nil, time.Time{})
	case "raises":
		return errors.New("connection reset")
	case "returns":
		return nil
	case "stuck":
		select {}
	case "stops":
	default:
		<-e.resigned
	}
	candidacy.Stopped()
	return nil
}

func (e *elector) Resign() { close(e.resigned) }

func (e *elector) IsLeader() bool { return false }

func main() {
	fencepost.RunElector(func(client *fencepost.Client) (fencepost.Elector, error) {
		if client.Options["mute"] == true {
			return nil, errors.New("no server answers")
		}
		return &elector{make(chan struct{})}, nil
	})
}
