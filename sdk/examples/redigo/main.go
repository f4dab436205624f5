// A lock on one Redis server by redigo, Debian's client of Redis for Go. With the argument
// no-owner-check its release deletes whatever key is there.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"time"

	"fencepost"

	"github.com/gomodule/redigo/redis"
)

const timeout = 500 * time.Millisecond

var (
	owned = redis.NewScript(1, "if redis.call('get', KEYS[1]) == ARGV[1] "+
		"then return redis.call('del', KEYS[1]) end return 0")
	blind = redis.NewScript(1, "return redis.call('del', KEYS[1])")
)

type lock struct {
	pool   *redis.Pool
	unlock *redis.Script
	secret string
}

func open(client *fencepost.Client) (fencepost.Lock, error) {
	made := &lock{unlock: owned}
	if len(os.Args) > 1 && os.Args[1] == "no-owner-check" {
		made.unlock = blind
	}
	made.pool = &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", client.Servers[0].Address(), redis.DialConnectTimeout(timeout),
			redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
	}}
	return made, nil
}

func (l *lock) Acquire(name string, ttl time.Duration) (*fencepost.Grant, error) {
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	l.secret = hex.EncodeToString(secret)
	conn := l.pool.Get()
	defer conn.Close()
	_, err := redis.String(conn.Do("SET", name, l.secret, "NX", "PX", ttl.Milliseconds()))
	if err == redis.ErrNil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &fencepost.Grant{}, nil
}

func (l *lock) Release(name string) error {
	conn := l.pool.Get()
	defer conn.Close()
	deleted, err := redis.Int(l.unlock.Do(conn, name, l.secret))
	if err == nil && deleted == 0 {
		return fencepost.Failed{Text: "it is another client's", Kind: "not-held"}
	}
	return err
}

func (l *lock) Close() error { return l.pool.Close() }

func main() { fencepost.Run(open) }
