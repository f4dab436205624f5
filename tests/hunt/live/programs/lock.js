'use strict';

// A lock on one Redis server, over a socket of its own. The first argument names its defect, the
// second one how often a client that is refused asks again by itself.

const crypto = require('crypto');
const net = require('net');
const { Failed, run } = require('./fencepost');

const DEFECT = process.argv[2];
const RETRIES = Number(process.argv[3] || 0);
const DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

class Lock {
  constructor(client) {
    this.server = client.servers[0];
    this.socket = null;
  }

  async acquire(name, ttlMs) {
    const asked = performance.now();
    this.secret = crypto.randomBytes(8).toString('hex');
    try {
      let tries = 0;
      while (!(await this.set(name, ttlMs))) {
        if (tries === RETRIES) return false;
        tries += 1;
        await new Promise((resolve) => { setTimeout(resolve, 50); });
      }
    } catch (error) {
      if (DEFECT !== 'timeout-is-a-yes') throw error;
    }
    if (DEFECT === 'lease-from-the-answer') return { deadline: performance.now() + ttlMs };
    return { deadline: asked + ttlMs };
  }

  async set(name, ttlMs) {
    if (DEFECT !== 'lease-set-later') {
      return (await this.call('SET', name, this.secret, 'NX', 'PX', ttlMs)) === 'OK';
    }
    if (!(await this.call('SETNX', name, this.secret))) return false;
    await this.call('PEXPIRE', name, ttlMs);
    return true;
  }

  async release(name) {
    if (DEFECT === 'no-owner-check') return (await this.call('DEL', name)) === 1;
    if (DEFECT === 'check-then-delete') {
      return (await this.call('GET', name)) === this.secret && (await this.call('DEL', name)) === 1;
    }
    return (await this.call('EVAL', DELETE, 1, name, this.secret)) === 1;
  }

  async call(...words) {
    const socket = await this.connected();
    const parts = words.map((one) => `$${String(one).length}\r\n${one}\r\n`);
    return new Promise((resolve, reject) => {
      const gone = (why) => {
        this.close();
        reject(why instanceof Error ? why : new Error('the connection was closed'));
      };
      socket.removeAllListeners();
      socket.setTimeout(100, () => gone(new Error('no answer within 100 ms')));
      socket.on('error', gone);
      socket.on('close', gone);
      socket.once('data', (data) => {
        socket.setTimeout(0);
        const [line, rest] = data.toString().split('\r\n');
        if (line[0] === ':') resolve(Number(line.slice(1)));
        else if (line[0] === '$') resolve(line === '$-1' ? null : rest);
        else resolve(line.slice(1));
      });
      socket.write(`*${words.length}\r\n${parts.join('')}`);
    });
  }

  connected() {
    if (this.socket) return this.socket;
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host: this.server.host, port: this.server.port, noDelay: true });
      socket.once('error', (error) => reject(new Failed(error.message, 'unreachable')));
      socket.once('connect', () => resolve(this.socket = socket));
    });
  }

  close() {
    if (this.socket) this.socket.destroy();
    this.socket = null;
  }
}

run((client) => new Lock(client));
