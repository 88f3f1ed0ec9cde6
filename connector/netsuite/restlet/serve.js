// Serves the RESTlet for the Go tests: one line of JSON in, one line of JSON out. A command names its
// in-memory account by a number; the first command makes the account.
'use strict';

const readline = require('node:readline');
const { Account } = require('./account.js');

const accounts = new Map();

// commandsOf are the commands of a new account.
function commandsOf(account) {
  const restlet = account.restlet();
  return {
    post: ({ body }) => restlet.post(body),
    get: ({ query }) => restlet.get(query),
    put: ({ type, id, values, sublists }) => account.put(type, id, values, sublists),
    set: ({ type, id, values }) => {
      const row = account.row(type, id);
      Object.assign(row.values, values);
      row.version += 1;
    },
    row: ({ type, id }) => ({ values: account.row(type, id).values, sublists: account.row(type, id).sublists }),
    effects: () => account.effects,
    limit: ({ units }) => { account.limit = units; },
    // The call ends after so many saves of the type, with whatever it has saved.
    endAfterSaves: ({ type, saves }) => {
      let left = saves;
      account.hooks.afterSave = (saved) => {
        if (saved !== type || (left -= 1) > 0) return;
        account.hooks = {};
        account.end('SSS_TIME_LIMIT_EXCEEDED');
      };
    },
    // The next save throws after everything was saved, as a script does that runs out of time.
    dieAfterSave: ({ type }) => {
      account.hooks.afterSave = (saved) => {
        if (saved !== type) return;
        account.hooks = {};
        throw Object.assign(new Error('script execution time exceeded'), { name: 'SSS_TIME_LIMIT_EXCEEDED' });
      };
    },
    // Every save of the type gets these values.
    userEvent: ({ type, values }) => {
      account.hooks.beforeSave = (saved, into) => {
        if (saved === type) Object.assign(into, values);
      };
    },
  };
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const command = JSON.parse(line);
  if (!accounts.has(command.account)) accounts.set(command.account, commandsOf(new Account()));
  let reply;
  try {
    reply = { result: accounts.get(command.account)[command.command](command) ?? null };
  } catch (e) {
    reply = { error: { code: e.name, message: e.message } };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
});
