// A lock on one Redis server, over a connection of its own. The first argument names its defect.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"lock/fencepost"
)

const del = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"

type lock struct {
	address string
	secret  string
	conn    net.Conn
	reader  *bufio.Reader
}

func (l *lock) Acquire(name string, ttl time.Duration) (*fencepost.Grant, error) {
	secret := make([]byte, 8)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	l.secret = hex.EncodeToString(secret)
	asked := time.Now()
	answer, err := l.call("SET", name, l.secret, "NX", "PX", fmt.Sprint(ttl.Milliseconds()))
	if err != nil || answer != "+OK" {
		return nil, err
	}
	return &fencepost.Grant{Deadline: asked.Add(ttl)}, nil
}

func (l *lock) Release(name string) error {
	words := []string{"EVAL", del, "1", name, l.secret}
	if os.Args[1] == "no-owner-check" {
		words = []string{"DEL", name}
	}
	answer, err := l.call(words...)
	if err == nil && answer != ":1" {
		return fencepost.Failed{Text: "it is another client's", Kind: "not-held"}
	}
	return err
}

func (l *lock) call(words ...string) (answer string, err error) {
	if l.conn == nil {
		if l.conn, err = net.DialTimeout("tcp", l.address, 100*time.Millisecond); err != nil {
			l.conn = nil
			return "", fencepost.Failed{Text: err.Error(), Kind: "unreachable"}
		}
		l.reader = bufio.NewReader(l.conn)
	}
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	l.conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err = l.conn.Write([]byte(request)); err == nil {
		answer, err = l.reader.ReadString('\n')
	}
	if err != nil {
		l.Close()
	}
	return strings.TrimSpace(answer), err
}

func (l *lock) Close() error {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
	return nil
}

func main() {
	fencepost.Run(func(client *fencepost.Client) (fencepost.Lock, error) {
		return &lock{address: client.Servers[0].Address()}, nil
	})
}
