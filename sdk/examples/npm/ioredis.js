'use strict';

// A lock on one Redis server, by npm's ioredis with its default settings. With the argument
// `no-owner-check` its release deletes whatever key is there.

const crypto = require('crypto');
const Redis = require('ioredis');
const { run } = require('../../javascript/fencepost');

const UNLOCK = process.argv[2] === 'no-owner-check'
  ? "return redis.call('del', KEYS[1])"
  : "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

class Lock {
  constructor({ servers: [{ host, port }] }) {
    this.redis = new Redis({ host, port });
    this.redis.on('error', () => {}); // it reconnects by itself
    this.redis.defineCommand('unlock', { numberOfKeys: 1, lua: UNLOCK });
  }

  async acquire(name, ttlMs) {
    this.secret = crypto.randomUUID();
    return (await this.redis.set(name, this.secret, 'PX', Math.round(ttlMs), 'NX')) === 'OK';
  }

  async release(name) {
    return (await this.redis.unlock(name, this.secret)) === 1;
  }

  close() {
    this.redis.disconnect();
  }
}

run((client) => new Lock(client));
