'use strict';

// An elector that does what the election's name says.

const { performance } = require('perf_hooks');

const { run } = require(process.env.FENCEPOST_SDK);

class Elector {
  constructor({ options }) {
    if (options.mute) throw new Error('no server answers');
    this.resigned = new Promise((resolve) => { this.resign = resolve; });
  }

  async run({ name, ttlMs, started, renewed, stopped }) {
    if (name === 'refused') throw new Error('no server answers');
    if (name === 'never') await new Promise(() => {});
    if (name === 'stops-first') stopped();
    if (name === 'over') {
      started({ deadline: performance.now() - 1 });
    } else if (name === 'renewed') {
      started({ token: 7, deadline: performance.now() + ttlMs });
      renewed(performance.now() + 2 * ttlMs);
    } else {
      started();
    }
    if (name === 'twice') started();
    if (name === 'raises') throw new Error('connection reset');
    if (name === 'returns') return;
    if (name === 'stuck') await new Promise(() => {});
    if (name !== 'stops') await this.resigned;
    stopped();
  }

  isLeader() {
    return false;
  }
}

run((client) => new Elector(client));
