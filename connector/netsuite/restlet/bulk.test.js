'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Account, failure } = require('./account.js');

const KEY = 'b'.repeat(64);
const plain = (value) => JSON.parse(JSON.stringify(value));

/** An account with vendors 1000, 1001, …, whose credit limit is 10. */
function newAccount(count) {
  const account = new Account();
  for (let i = 0; i < count; i += 1) account.put('vendor', String(1000 + i), { companyname: `V${i}`, creditlimit: 10 });
  return account;
}

const lineOf = (i, more) => ({
  ns_internal_id: String(1000 + i), fields: { creditlimit: String(20 + i) }, expect: { creditlimit: '10' }, ...more,
});

const bulk = (count, more) => ({
  protocol: 'gatehouse/1', do: 'bulk_update', idempotency_key: KEY, digest: 'd1', action_id: 'act_1',
  record_type: 'vendor', offset: 0, within_ms: 60000,
  lines: Array.from({ length: count }, (_, i) => lineOf(i)), ...more,
});

const status = (count, more) => ({
  protocol: 'gatehouse/1', do: 'status', operation: 'bulk_update', record_type: 'vendor', idempotency_key: KEY,
  offset: '0', count: String(count), within_ms: '60000', ...more,
});

const limits = (account, count) =>
  Array.from({ length: count }, (_, i) => account.row('vendor', String(1000 + i)).values.creditlimit);
const approved = (count) => Array.from({ length: count }, (_, i) => 20 + i);
const outcomes = (got) => plain(got).lines.map((line) => line.outcome);

/** Calls until every line has an outcome, as the connector does. */
function toTheEnd(restlet, request) {
  const lines = [];
  let calls = 0;
  for (; lines.length < request.lines.length; calls += 1) {
    const got = plain(restlet.post({ ...request, offset: lines.length }));
    assert.equal(got.outcome, 'page');
    assert.ok(got.lines.length > 0, 'a call makes no progress');
    lines.push(...got.lines);
  }
  return { lines, calls };
}

test('all lines are saved, and each is answered as an update', () => {
  const account = newAccount(3);
  const got = plain(account.restlet().post(bulk(3)));
  assert.deepEqual(limits(account, 3), approved(3));
  assert.deepEqual(outcomes(got), ['applied', 'applied', 'applied']);
  assert.deepEqual(got.lines[1].before, { creditlimit: '10' });
  assert.deepEqual(got.lines[1].after, { creditlimit: '21' });
  assert.equal(got.lines[1].ns_internal_id, '1001');
});

test('usage runs out: the call ends in time, and the next one goes on', () => {
  const account = newAccount(200);
  const { lines, calls } = toTheEnd(account.restlet(), bulk(200));
  assert.deepEqual(limits(account, 200), approved(200));
  assert.equal(lines.filter((line) => line.outcome === 'applied' && !line.replayed).length, 200);
  assert.equal(calls, 2);
  assert.equal(account.effects, 200);
  assert.ok(account.used.every((used) => used <= 5000 - 100), `${account.used}`);
  assert.deepEqual(outcomes(account.restlet().get(status(200))), Array(200).fill('applied'));
});

test('a call without time makes one line', () => {
  const account = newAccount(3);
  assert.equal(account.restlet().post(bulk(3, { within_ms: 0 })).lines.length, 1);
  assert.equal(account.effects, 1);
});

test('an answer ends before it is too large', () => {
  const account = newAccount(100);
  const text = 'x'.repeat(9000);
  const lines = Array.from({ length: 100 }, (_, i) => lineOf(i, { fields: { comments: text }, expect: {} }));
  const { calls } = toTheEnd(account.restlet(), bulk(100, { lines }));
  assert.ok(calls > 2, `${calls} calls`);
  assert.equal(account.effects, 100);
  const got = account.restlet().get(status(100));
  assert.ok(got.lines.length < 100 && got.lines[0].after.comments === text);
});

for (const count of [2, 5]) {
  test(`the call is killed after ${count} saves, and is made again`, () => {
    const account = newAccount(6);
    const restlet = account.restlet();
    let saves = 0;
    account.hooks.afterSave = (type) => {
      if (type === 'vendor' && (saves += 1) === count) account.end('SSS_TIME_LIMIT_EXCEEDED');
    };
    assert.throws(() => restlet.post(bulk(6)), { name: 'SSS_TIME_LIMIT_EXCEEDED' });
    assert.equal(account.effects, count);
    account.hooks = {};
    const got = restlet.post(bulk(6));
    assert.equal(account.effects, 6);
    assert.deepEqual(limits(account, 6), approved(6));
    assert.deepEqual(outcomes(got), [...Array(6)].map((_, i) => (i === count - 1 ? 'in_doubt' : 'applied')));
    assert.deepEqual(plain(got).lines.map((line) => !!line.replayed), [...Array(6)].map((_, i) => i < count - 1));
  });
}

test('usage that ends within a line ends the call', () => {
  const account = newAccount(2);
  account.limit = 170;
  account.hooks.beforeSave = (type) => type === 'vendor' && account.spend(150);
  assert.throws(() => account.restlet().post(bulk(2)), { name: 'SSS_USAGE_LIMIT_EXCEEDED' });
  assert.equal(account.effects, 0);
});

test('two calls at once: each line is saved once', () => {
  for (let at = 0; at < 4; at += 1) {
    const account = newAccount(4);
    const restlet = account.restlet();
    let begun = 0;
    let second;
    account.hooks.beforeSave = (type) => {
      if (type !== 'vendor' || (begun += 1) !== at + 1) return;
      account.hooks = {};
      second = plain(restlet.post(bulk(4)));
    };
    const first = plain(restlet.post(bulk(4)));
    assert.equal(account.effects, 4);
    assert.deepEqual(limits(account, 4), approved(4));
    assert.deepEqual(outcomes(first), Array(4).fill('applied'));
    assert.deepEqual(outcomes(second), [...Array(4)].map((_, i) => (i === at ? 'in_doubt' : 'applied')));
    assert.deepEqual(outcomes(restlet.post(bulk(4))), Array(4).fill('applied'));
  }
});

test('a bad line is refused, and the others are saved', () => {
  const account = newAccount(4);
  account.row('vendor', '1001').values.creditlimit = 11;
  const restlet = account.restlet();
  const request = bulk(4);
  request.lines[2].fields = { nosuch: 'x' };
  const got = restlet.post(request);
  assert.deepEqual(
    plain(got).lines.map((line) => line.code ?? 'applied'),
    ['applied', 'target_changed', 'INVALID_FLD_VALUE', 'applied'],
  );
  assert.deepEqual(limits(account, 4), [20, 11, 10, 23]);
  account.row('vendor', '1001').values.creditlimit = 10;
  assert.deepEqual(outcomes(restlet.post(request)), ['applied', 'applied', 'refused', 'applied']);
  assert.equal(account.effects, 3);
});

test('the key with other lines is refused', () => {
  const account = newAccount(3);
  const restlet = account.restlet();
  restlet.post(bulk(2));
  const got = restlet.post(bulk(3, { digest: 'd2', lines: [lineOf(2), lineOf(1), lineOf(0)] }));
  assert.deepEqual(
    plain(got).lines.map((line) => line.code),
    ['idempotency_conflict', 'idempotency_conflict', 'target_changed'],
  );
  assert.equal(account.effects, 2);
});

test('no lines, too many lines, one record twice, an offset outside: refused as a whole', () => {
  const account = newAccount(201);
  const restlet = account.restlet();
  const item = (vendor) => lineOf(0, { line: { sublist: 'itemvendor', key: 'vendor', value: vendor } });
  for (const wrong of [
    { lines: [] }, { lines: undefined }, { offset: 2 }, { offset: -1 }, { offset: 0.5 }, { offset: undefined },
    { lines: bulk(201).lines }, { lines: [lineOf(0), lineOf(1), lineOf(0)] }, { lines: [item('7'), item('7')] },
  ]) {
    const got = restlet.post(bulk(2, wrong));
    assert.equal(got.outcome, 'refused', JSON.stringify(wrong).slice(0, 100));
    assert.equal(got.code, 'invalid');
  }
  assert.equal(account.effects, 0);
});

test('two lines of one record are two changes', () => {
  const account = newAccount(0);
  const prices = () => account.row('inventoryitem', '11').sublists.itemvendor.map((l) => l.purchaseprice);
  account.put('inventoryitem', '11', {}, {
    itemvendor: [{ vendor: '7', purchaseprice: 3.5 }, { vendor: '8', purchaseprice: 4 }],
  });
  const price = (vendor, value) => ({
    ns_internal_id: '11', fields: { purchaseprice: value },
    line: { sublist: 'itemvendor', key: 'vendor', value: vendor },
  });
  const lines = [price('7', '3.6'), price('8', '4.1')];
  const got = account.restlet().post(bulk(2, { record_type: 'inventoryitem', lines }));
  assert.deepEqual(outcomes(got), ['applied', 'applied']);
  assert.deepEqual(prices(), [3.6, 4.1]);
});

test('hostile text is saved as it is', () => {
  const account = newAccount(1);
  const text = '"}],"x":[{\r\n\u0000\u202e</script>${1}\'; DROP';
  account.restlet().post(bulk(1, { lines: [lineOf(0, { fields: { comments: text }, expect: {} })] }));
  assert.equal(account.row('vendor', '1000').values.comments, text);
});

test('the state of many records is read, with those that are missing', () => {
  const account = newAccount(2);
  const got = account.restlet().get({
    protocol: 'gatehouse/1', do: 'read', record_type: 'vendor', fields: 'creditlimit', refs: '1000,999,1001',
    within_ms: '60000',
  });
  assert.deepEqual(outcomes(got), ['found', 'not_found', 'found']);
  assert.equal(got.lines[2].fields.creditlimit, '10');
});

test('a result that cannot be kept leaves its line in doubt', () => {
  const account = newAccount(2);
  account.hooks.beforeSubmitFields = () => { throw failure('UNEXPECTED_ERROR'); };
  const restlet = account.restlet();
  assert.deepEqual(outcomes(restlet.post(bulk(2))), ['applied', 'applied']);
  assert.deepEqual(outcomes(restlet.post(bulk(2))), ['in_doubt', 'in_doubt']);
  assert.equal(account.effects, 2);
});

test('an error within one line hides nothing of the others', () => {
  const account = newAccount(3);
  account.row('vendor', '1001').values.creditlimit = 11;
  const restlet = account.restlet();
  let searches = 0;
  account.hooks.beforeSearch = () => {
    if ((searches += 1) === 2) throw failure('INSUFFICIENT_PERMISSION');
  };
  assert.deepEqual(outcomes(restlet.post(bulk(3))), ['applied', 'in_doubt', 'applied']);
});
