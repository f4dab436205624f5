'use strict';

// Redlock on several Redis servers, over sockets of its own. The first argument names its defect.

const crypto = require('crypto');
const net = require('net');
const { Failed, run } = require('./fencepost');

const DEFECT = process.argv[2];
const MINE = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end ";
const EXTEND = `${MINE}redis.call('pexpire', KEYS[1], ARGV[2]) return 1`;
const DELETE = `${MINE}redis.call('del', KEYS[1]) return 1`;

class Server {
  constructor({ host, port }) {
    this.waiting = [];
    this.socket = net.connect({ host, port, noDelay: true });
    this.socket.on('error', () => {}); // no answer is a no
    this.socket.on('data', (data) => {
      for (const reply of String(data).split('\r\n').slice(0, -1)) {
        this.waiting.shift()(reply === '+OK' || reply === ':1');
      }
    });
  }

  ask(words) {
    const parts = words.map((one) => `$${String(one).length}\r\n${one}\r\n`);
    return new Promise((resolve) => {
      const late = DEFECT === 'grants-late' ? null : setTimeout(resolve, 50, false);
      this.waiting.push((yes) => { clearTimeout(late); resolve(yes); });
      this.socket.write(`*${words.length}\r\n${parts.join('')}`);
    });
  }
}

class Lock {
  constructor({ servers }) {
    this.servers = servers.map((one) => new Server(one));
  }

  async quorum(...words) {
    const answers = await Promise.all(this.servers.map((one) => one.ask(words)));
    return 2 * answers.filter(Boolean).length > this.servers.length;
  }

  /** Returns the grant if a majority says yes in time, else null. */
  async grant(ttlMs, ...words) {
    const deadline = performance.now() + ttlMs * 0.99 - 2;
    const granted = await this.quorum(...words);
    return granted && (performance.now() < deadline || DEFECT === 'grants-late') ? { deadline } : null;
  }

  async acquire(name, ttlMs) {
    this.secret = crypto.randomBytes(8).toString('hex');
    const granted = await this.grant(ttlMs, 'SET', name, this.secret, 'NX', 'PX', ttlMs);
    if (!granted) await this.free(name);
    return granted || false;
  }

  async extend(name, ttlMs) {
    const granted = await this.grant(ttlMs, 'EVAL', EXTEND, 1, name, this.secret, ttlMs);
    if (!granted && DEFECT === 'extend-unlocks') await this.free(name);
    if (!granted) throw new Failed('no quorum in time', 'no-quorum');
    return granted;
  }

  async release(name) {
    if (!(await this.free(name))) throw new Error('no quorum');
  }

  free(name) {
    return this.quorum('EVAL', DELETE, 1, name, this.secret);
  }

  close() {
    this.servers.forEach(({ socket }) => socket.destroy());
  }
}

run((client) => new Lock(client));
