'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Account, failure } = require('./account.js');

const KEY = 'k'.repeat(64);

function newAccount() {
  const account = new Account();
  account.put('vendor', '42', { companyname: 'ACME', creditlimit: 1000, isinactive: false, terms: '5' });
  account.put('inventoryitem', '11', { itemid: 'W' }, { itemvendor: [{ vendor: '7', purchaseprice: 3.5 }] });
  return account;
}

const update = (more) => ({
  protocol: 'gatehouse/1', do: 'update', idempotency_key: KEY, digest: 'd1', action_id: 'act_1', record_type: 'vendor',
  ns_internal_id: '42', fields: { creditlimit: '2500.50', isinactive: true, custentity_since: '2026-11-24' },
  expect: { creditlimit: '1000.00' }, ...more,
});

const plain = (value) => JSON.parse(JSON.stringify(value));

test('an update is saved, and answered with what was and is', () => {
  const account = newAccount();
  const got = plain(account.restlet().post(update()));
  assert.equal(got.outcome, 'applied');
  assert.deepEqual(got.before, { creditlimit: '1000', isinactive: false, custentity_since: null });
  assert.deepEqual(got.after, { creditlimit: '2500.5', isinactive: true, custentity_since: '2026-11-24' });
  assert.equal(got.ns_internal_id, '42');
  assert.equal(account.effects, 1);
});

test('the same key gives the same answer, and no second save', () => {
  const account = newAccount();
  const restlet = account.restlet();
  const first = plain(restlet.post(update()));
  const second = plain(restlet.post(update()));
  assert.deepEqual(second, { ...first, replayed: true });
  assert.equal(account.effects, 1);
  assert.equal(restlet.post(update({ digest: 'd2' })).code, 'idempotency_conflict');
  assert.equal(restlet.get({ protocol: 'gatehouse/1', do: 'status', operation: 'update', idempotency_key: KEY }).outcome, 'applied');
});

test('what is not as expected is refused, and its key is free again', () => {
  const account = newAccount();
  const restlet = account.restlet();
  assert.equal(restlet.post(update({ expect: { creditlimit: '999' } })).code, 'target_changed');
  assert.equal(restlet.post(update({ expect_lastmodified: 'yesterday' })).code, 'target_changed');
  assert.equal(restlet.post(update({ ns_internal_id: '43' })).code, 'target_changed');
  assert.equal(restlet.post(update({ fields: { nosuch: 'x' } })).code, 'INVALID_FLD_VALUE');
  assert.equal(account.effects, 0);
  assert.equal(restlet.post(update()).outcome, 'applied');
});

test('somebody saves between load and save: refused, and the key is free again', () => {
  const account = newAccount();
  account.hooks.beforeSave = (type) => {
    if (type === 'vendor') account.row('vendor', '42').version += 1;
  };
  const restlet = account.restlet();
  assert.equal(restlet.post(update()).code, 'target_changed');
  account.hooks = {};
  assert.equal(restlet.post(update()).outcome, 'applied');
  assert.equal(account.effects, 1);
});

test('a second call while the first one saves is in doubt, and saves nothing', () => {
  const account = newAccount();
  const restlet = account.restlet();
  let second;
  account.hooks.beforeSave = (type) => {
    if (type !== 'vendor') return;
    account.hooks = {};
    second = restlet.post(update());
  };
  assert.equal(restlet.post(update()).outcome, 'applied');
  assert.equal(second.outcome, 'in_doubt');
  assert.equal(account.effects, 1);
});

test('two calls insert the key at once: one saves', () => {
  const account = newAccount();
  const restlet = account.restlet();
  let first;
  account.hooks.beforeSave = (type) => {
    if (type === 'vendor') return;
    account.hooks = {};
    first = restlet.post(update()); // a call in between
  };
  const second = restlet.post(update());
  assert.equal(first.outcome, 'applied');
  assert.equal(second.replayed, true);
  assert.equal(account.effects, 1);
});

test('the script ends after the save: the key stays in doubt, and is never repeated', () => {
  const account = newAccount();
  account.hooks.afterSave = (type) => {
    if (type === 'vendor') throw failure('SSS_TIME_LIMIT_EXCEEDED');
  };
  const restlet = account.restlet();
  assert.equal(restlet.post(update()).outcome, 'in_doubt');
  account.hooks = {};
  assert.equal(restlet.post(update()).outcome, 'in_doubt');
  assert.equal(restlet.get({ protocol: 'gatehouse/1', do: 'status', operation: 'update', idempotency_key: KEY }).outcome, 'in_doubt');
  assert.equal(account.effects, 1);
});

test('the result cannot be kept: applied now, in doubt later', () => {
  const account = newAccount();
  account.hooks.beforeSubmitFields = () => { throw failure('UNEXPECTED_ERROR'); };
  const restlet = account.restlet();
  assert.equal(restlet.post(update()).outcome, 'applied');
  assert.equal(restlet.post(update()).outcome, 'in_doubt');
  assert.equal(account.effects, 1);
});

test('a script of the account refuses the save: refused, and the key is free again', () => {
  const account = newAccount();
  account.hooks.beforeSave = (type) => {
    if (type === 'vendor') throw failure('USER_ERROR', 'not on a Sunday');
  };
  const restlet = account.restlet();
  const got = restlet.post(update());
  assert.equal(got.outcome, 'refused');
  assert.equal(got.code, 'USER_ERROR');
  account.hooks = {};
  assert.equal(restlet.post(update()).outcome, 'applied');
});

test('a line of a sublist is found by its key', () => {
  const account = newAccount();
  const restlet = account.restlet();
  const cost = (value) => update({
    record_type: 'inventoryitem', ns_internal_id: '11', line: { sublist: 'itemvendor', key: 'vendor', value },
    fields: { purchaseprice: '4.25' }, expect: { purchaseprice: '3.50' },
  });
  assert.equal(restlet.post(cost('8')).code, 'target_changed');
  assert.deepEqual(plain(restlet.post(cost('7')).after), { purchaseprice: '4.25' });
});

test('a create makes one record, with its lines, however often it is asked for', () => {
  const account = newAccount();
  const restlet = account.restlet();
  const order = {
    protocol: 'gatehouse/1', do: 'create', idempotency_key: KEY, digest: 'd1', action_id: 'act_1', record_type: 'salesorder',
    fields: { entity: '7', trandate: '2026-11-24' }, lines: { item: [{ item: '11', quantity: '3', rate: '19.99' }] },
  };
  const first = plain(restlet.post(order));
  let tried = 0;
  account.hooks.beforeSave = () => { tried += 1; };
  const second = plain(restlet.post(order));
  assert.equal(tried, 0, 'scripts of the account would have run a second time');
  assert.equal(first.outcome, 'applied');
  assert.deepEqual(first.after, {
    entity: '7', trandate: '2026-11-24', item: [{ item: '11', quantity: '3', rate: '19.99' }],
  });
  assert.equal(second.ns_internal_id, first.ns_internal_id);
  assert.equal(account.effects, 1);
});

test('two creates at once make one record', () => {
  const account = newAccount();
  const restlet = account.restlet();
  const vendor = {
    protocol: 'gatehouse/1', do: 'create', idempotency_key: KEY, digest: 'd1', action_id: 'act_1', record_type: 'vendor',
    fields: { companyname: 'Initech' },
  };
  let first;
  account.hooks.beforeSave = () => {
    account.hooks = {};
    first = restlet.post(vendor);
  };
  const second = restlet.post(vendor);
  assert.equal(second.ns_internal_id, first.ns_internal_id);
  assert.equal(second.replayed, true);
  assert.equal(account.effects, 1);
});

test('too little usage is refused before anything is done', () => {
  const account = newAccount();
  account.limit = 100;
  assert.equal(account.restlet().post(update()).code, 'governance');
  assert.equal(account.rows.size, 2);
});

test('numbers that JavaScript writes with an exponent are written out', () => {
  const account = newAccount();
  account.row('vendor', '42').values.creditlimit = 0.0000001;
  const got = account.restlet().get({
    protocol: 'gatehouse/1', do: 'read', record_type: 'vendor', ns_internal_id: '42', fields: 'creditlimit',
  });
  assert.equal(got.fields.creditlimit, '0.0000001');
});
