'use strict';

// A lock that does what the lock's name says.

const { performance } = require('perf_hooks');
const { Failed, Indeterminate, run } = require(process.env.FENCEPOST_SDK);

class Puppet {
  constructor(client) {
    this.client = client;
    console.log('made for', client.servers, client.options.retries, client.seed);
    if (client.options.mute) throw new Error('no server answers');
  }

  async acquire(name, ttlMs) {
    if (name === 'lost-at-once') {
      this.client.lost(null, 'its session ended');
      this.client.lost('another', "not this one's");
    }
    switch (name) {
      case 'no': return false;
      case 'nothing': return null;
      case 'token': return { token: 2n ** 60n + 1n };
      case 'short': return { deadline: performance.now() + ttlMs / 2 };
      case 'over': return { deadline: new Date(Date.now() - 1000) };
      case 'woken': return { wakeups: 2 };
      case 'endless': return { deadline: null };
      case 'failed': throw new Failed('somebody else has it');
      case 'no-quorum': throw new Failed('two of five', 'no-quorum');
      case 'timeout': throw new Indeterminate('no reply');
      case 'raises': throw new Error('what now');
      case 'nonsense': return 'yes';
      case 'exit': console.error('enough'); return process.exit(1);
      default: return true;
    }
  }

  async extend(name) {
    if (name === 'renewed') {
      this.client.renewed(name, performance.now() + 3000);
      this.client.lost(name, 'its lease ran out');
    }
    return name !== 'not-extended';
  }

  async release(name) {
    if (name === 'release-raises') throw new Error('what now');
    return name !== 'not-released';
  }

  async close() {
    console.log('closed');
    if (this.client.options.close === 'raises') throw new Error('no such socket');
  }
}

run((client) => new Puppet(client), { promises: ['fifo', 'one_wakeup'] });
