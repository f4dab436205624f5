'use strict';

// npm's BullMQ: the lock of a job. The queue has one job, which a client takes and puts back.

const crypto = require('crypto');
const { Queue, Worker } = require('bullmq');
const { run } = require('../../javascript/fencepost');

class Lock {
  constructor({ servers: [{ host, port }] }) {
    this.connection = { host, port, maxRetriesPerRequest: null };
    this.opened = [];
  }

  async open(name, ttlMs) {
    const { connection } = this;
    const queue = new Queue(name, { connection });
    const worker = new Worker(name, null, {
      connection, autorun: false, lockDuration: ttlMs, stalledInterval: ttlMs / 2,
    });
    [queue, worker].forEach((one) => one.on('error', () => {})); // it reconnects by itself
    this.opened.push(worker, queue);
    await queue.add('work', {}, { jobId: 'only' });
    await worker.startStalledCheckTimer();
    return worker;
  }

  async acquire(name, ttlMs) {
    this.worker = this.worker || (await this.open(name, Math.round(ttlMs)));
    this.token = crypto.randomUUID();
    this.job = await this.worker.getNextJob(this.token, { block: false });
    return Boolean(this.job);
  }

  async extend(name, ttlMs) {
    return (await this.job.extendLock(this.token, Math.round(ttlMs))) === 1;
  }

  async release() {
    await this.job.moveToWait(this.token);
  }

  async close() {
    await Promise.all(this.opened.map((one) => one.close(true)));
  }
}

run((client) => new Lock(client));
