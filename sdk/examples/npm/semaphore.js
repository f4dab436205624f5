'use strict';

// npm's redis-semaphore: its Mutex, which renews its lease by itself. With the argument `once` it
// does not (refreshInterval 0).

const Redis = require('ioredis');
const { Mutex } = require('redis-semaphore');
const { run } = require('../../javascript/fencepost');

const ONCE = process.argv[2] === 'once';

class Lock {
  constructor(client) {
    const [{ host, port }] = client.servers;
    this.client = client;
    this.redis = new Redis({ host, port });
    this.redis.on('error', () => {}); // it reconnects by itself
    this.locks = new Map();
  }

  async acquire(name, ttlMs) {
    const lockTimeout = Math.round(ttlMs);
    const mutex = new Mutex(this.redis, name, {
      lockTimeout,
      acquireTimeout: lockTimeout,
      ...(ONCE ? { refreshInterval: 0 } : {}),
      onLockLost: (error) => this.client.lost(name, error.message),
    });
    if (!(await mutex.tryAcquire())) return false;
    this.locks.set(name, mutex);
    // It says nothing of the end of a lease that it renews.
    return ONCE ? true : { deadline: null };
  }

  async release(name) {
    await this.locks.get(name).release();
  }

  close() {
    this.locks.forEach((mutex) => mutex.stopRefresh());
    this.redis.disconnect();
  }
}

run((client) => new Lock(client));
