/**
 * Carries out changes that were approved in Gatehouse, each at most once.
 *
 * An update has two guards. It is made only if the record still has the values that
 * the proposal expects. And its key is stored in a record of the custom type
 * customrecord_gatehouse_key, with the key as external id. That record is inserted
 * before the save and completed with the result after it; these are three
 * transactions. A key without a result is in doubt: the save may have happened, so it
 * is not repeated.
 *
 * A bulk update is one update for each of its lines, in their order. The key of line
 * 7 is the action's key with -7. Lines are made as long as usage, time and room for the
 * answer are left; the answer has the outcomes of those that were made.
 *
 * A create needs no such record: the new record's external id is the key.
 *
 * A refused change has changed nothing. An exception that leaves this script proves
 * nothing.
 *
 * @NApiVersion 2.1
 * @NScriptType Restlet
 * @NModuleScope SameAccount
 */
define(['N/record', 'N/search', 'N/runtime', 'N/log'], (record, search, runtime, log) => {
  const PROTOCOL = 'gatehouse/1';
  const KEY_TYPE = 'customrecord_gatehouse_key';
  const DIGEST = 'custrecord_gatehouse_digest';
  const ACTION = 'custrecord_gatehouse_action';
  const RESULT = 'custrecord_gatehouse_result';

  /** The maximum cost of one change, in units of governance: three loads, three saves. */
  const USAGE = 150;

  /** The most lines of a bulk update, and the characters of an answer that end a page. */
  const MAX_LINES = 200;
  const MAX_ANSWER = 250000;

  const NUMERIC = new Set(['currency', 'currency2', 'float', 'integer', 'percent', 'rate', 'posfloat', 'posinteger']);

  const answer = (outcome, more) => ({ protocol: PROTOCOL, outcome, ...more });
  const refused = (code, detail) => answer('refused', { code, detail: String(detail).slice(0, 500) });
  const inDoubt = (digest, detail) => answer('in_doubt', { digest, detail: String(detail).slice(0, 500) });

  /** A value in the protocol's form: digits as text, dates as YYYY-MM-DD, null if missing. */
  function toWire(type, value) {
    if (type === 'checkbox') return value === true || value === 'T';
    if (value === null || value === undefined || value === '') return null;
    if (value instanceof Date) {
      const two = (n) => String(n).padStart(2, '0');
      return `${value.getFullYear()}-${two(value.getMonth() + 1)}-${two(value.getDate())}`;
    }
    if (typeof value === 'number' && /e/.test(String(value))) return value.toFixed(15).replace(/\.?0+$/, '');
    return String(value);
  }

  /** A value in SuiteScript's form. */
  function fromWire(type, value) {
    if (type === 'checkbox') return value === true;
    if (value === null) return '';
    if (NUMERIC.has(type)) return Number(value);
    if (type === 'date') {
      const [year, month, day] = value.split('-').map(Number);
      return new Date(year, month - 1, day);
    }
    return value;
  }

  function same(type, a, b) {
    if (a === null || b === null || a === '' || b === '') return (a ?? '') === (b ?? '');
    if (NUMERIC.has(type)) return Number(a) === Number(b);
    return String(a) === String(b);
  }

  /** The fields of a record, or of one line of it, for reading and writing. */
  function fieldsOf(rec, line) {
    const at = line && {
      sublistId: line.sublist,
      line: rec.findSublistLineWithValue({ sublistId: line.sublist, fieldId: line.key, value: line.value }),
    };
    if (at && at.line < 0) return null;
    const type = (fieldId) => {
      const field = at ? rec.getSublistField({ ...at, fieldId }) : rec.getField({ fieldId });
      if (!field) throw Object.assign(new Error(`there is no field ${fieldId}`), { name: 'INVALID_FLD_VALUE' });
      return field.type;
    };
    const get = (fieldId) =>
      toWire(type(fieldId), at ? rec.getSublistValue({ ...at, fieldId }) : rec.getValue({ fieldId }));
    return {
      get,
      set: (fieldId, value) => {
        const v = fromWire(type(fieldId), value);
        if (at) rec.setSublistValue({ ...at, fieldId, value: v });
        else rec.setValue({ fieldId, value: v });
      },
      all: (names) => Object.fromEntries(names.map((name) => [name, get(name)])),
      differing: (expected) =>
        Object.keys(expected).filter((name) => !same(type(name), expected[name], get(name))),
    };
  }

  /** The lines of a new record, with the requested fields. */
  function linesOf(rec, asked) {
    const out = {};
    for (const [sublistId, lines] of Object.entries(asked || {})) {
      const count = rec.getLineCount({ sublistId });
      out[sublistId] = [];
      for (let line = 0; line < count; line += 1) {
        const names = Object.keys(lines[Math.min(line, lines.length - 1)]);
        out[sublistId].push(Object.fromEntries(names.map((fieldId) => [
          fieldId,
          toWire(rec.getSublistField({ sublistId, fieldId, line }).type, rec.getSublistValue({ sublistId, fieldId, line })),
        ])));
      }
    }
    return out;
  }

  function modified(rec) {
    const at = rec.getValue({ fieldId: 'lastmodifieddate' });
    return at instanceof Date ? at.toISOString() : String(at ?? '');
  }

  /** The internal id of the record with an external id; null for none. */
  function byExternalId(type, key) {
    const rows = search.create({ type, filters: [['externalid', 'anyof', [key]]], columns: ['internalid'] })
      .run().getRange({ start: 0, end: 1 });
    return rows.length === 0 ? null : String(rows[0].id);
  }

  /** A stored result; null for none. A search can cut a long text, but the record has all of it. */
  function resultOf(id, text) {
    if (!text) return null;
    try {
      return JSON.parse(text);
    } catch (e) {
      return JSON.parse(record.load({ type: KEY_TYPE, id }).getValue({ fieldId: RESULT }));
    }
  }

  /** The stored records of keys, by key. */
  function keptAll(keys) {
    const rows = search.create({
      type: KEY_TYPE, filters: [['externalid', 'anyof', keys]], columns: ['externalid', DIGEST, RESULT],
    }).run().getRange({ start: 0, end: 1000 });
    return new Map(rows.map((row) => [row.getValue({ name: 'externalid' }), {
      digest: row.getValue({ name: DIGEST }), result: resultOf(row.id, row.getValue({ name: RESULT })),
    }]));
  }

  /** The stored record of a key; null for none. */
  const kept = (key) => keptAll([key]).get(key) ?? null;

  /** The answer to a call whose key already exists. */
  function again(found, digest) {
    if (found.digest !== digest) return refused('idempotency_conflict', 'the key has made another change');
    if (found.result === null) return inDoubt(found.digest, 'the change may have been saved; read the record');
    return { ...found.result, replayed: true };
  }

  function keep(request) {
    const rec = record.create({ type: KEY_TYPE });
    rec.setValue({ fieldId: 'externalid', value: request.idempotency_key });
    rec.setValue({ fieldId: DIGEST, value: request.digest });
    rec.setValue({ fieldId: ACTION, value: request.action_id });
    return rec.save();
  }

  function forget(id) {
    try {
      record.delete({ type: KEY_TYPE, id });
    } catch (e) {
      log.error({ title: 'gatehouse: a key stays in doubt', details: `${id}: ${e.message}` });
    }
  }

  function load(request) {
    return record.load({ type: request.record_type, id: request.ns_internal_id });
  }

  /** The outcome of a saved change: the record's present state. */
  function applied(request, before, asked) {
    const result = answer('applied', {
      ns_internal_id: String(request.ns_internal_id), record_type: request.record_type, digest: request.digest,
      before, after: null, applied_at: new Date().toISOString(),
    });
    try {
      const rec = load(request);
      const fields = fieldsOf(rec, request.line);
      if (fields !== null) {
        result.after = { ...fields.all(Object.keys(asked)), ...linesOf(rec, request.lines) };
        result.lastmodified = modified(rec);
      }
    } catch (e) {
      log.error({ title: 'gatehouse: a saved record could not be read', details: e.message });
    }
    return result;
  }

  function update(request, found = kept(request.idempotency_key)) {
    if (found !== null) return again(found, request.digest);
    const out = change(request);
    if (out.outcome !== 'refused') return out;
    const other = kept(request.idempotency_key); // a concurrent call was faster
    return other === null ? out : again(other, request.digest);
  }

  function change(request) {
    let rec;
    let fields;
    let before;
    try {
      rec = load(request);
      fields = fieldsOf(rec, request.line);
      if (fields === null) return refused('target_changed', 'there is no such line');
      if (request.expect_lastmodified && request.expect_lastmodified !== modified(rec)) {
        return refused('target_changed', `the record was modified at ${modified(rec)}`);
      }
      const differing = fields.differing(request.expect || {});
      if (differing.length > 0) {
        return refused('target_changed', `not as expected: ${JSON.stringify(fields.all(differing))}`);
      }
      before = fields.all(Object.keys(request.fields));
      for (const [name, value] of Object.entries(request.fields)) fields.set(name, value);
    } catch (e) {
      return refused(e.name === 'RCRD_DSNT_EXIST' ? 'target_changed' : e.name, e.message);
    }

    let key;
    try {
      key = keep(request);
    } catch (e) {
      return refused(e.name, e.message);
    }
    try {
      rec.save();
    } catch (e) {
      return unsaved(request, key, before, e);
    }
    const result = applied(request, before, request.fields);
    try {
      record.submitFields({ type: KEY_TYPE, id: key, values: { [RESULT]: JSON.stringify(result) } });
    } catch (e) {
      log.error({ title: 'gatehouse: a result was not kept', details: `${key}: ${e.message}` });
    }
    return result;
  }

  /**
   * Calls one(i) for the lines from request.offset on. It ends early when little usage or room is
   * left, or after request.within_ms, but makes one line at least.
   */
  function page(request, count, one) {
    const end = Date.now() + Number(request.within_ms);
    const usageLeft = () => runtime.getCurrentScript().getRemainingUsage() >= USAGE;
    const lines = [];
    let size = 0;
    for (let i = Number(request.offset || 0); i < count && usageLeft() && size < MAX_ANSWER; i += 1) {
      if (lines.length > 0 && Date.now() >= end) break;
      const line = one(i);
      lines.push(line);
      size += JSON.stringify(line).length;
    }
    return answer('page', { lines });
  }

  const lineKey = (request, i) => `${request.idempotency_key}-${i}`;

  /** The stored records of the keys of a bulk update's lines, from request.offset on. */
  function keptLines(request, count) {
    const keys = [];
    for (let i = Number(request.offset); i < count; i += 1) keys.push(lineKey(request, i));
    return keptAll(keys);
  }

  function bulkUpdate(request) {
    const { lines, offset } = request;
    const count = Array.isArray(lines) ? lines.length : 0;
    if (count > MAX_LINES || !Number.isInteger(offset) || offset < 0 || offset >= count) {
      return refused('invalid', `a bulk update has 1 to ${MAX_LINES} lines, and begins with one of them`);
    }
    if (new Set(lines.map((l) => JSON.stringify([l.ns_internal_id, l.line]))).size < count) {
      return refused('invalid', 'two lines change the same record');
    }
    const found = keptLines(request, count);
    return page(request, count, (i) => {
      const key = lineKey(request, i);
      try {
        return update({ ...request, lines: undefined, ...lines[i], idempotency_key: key }, found.get(key) ?? null);
      } catch (e) { // it would hide what was saved before
        return inDoubt(request.digest, `${e.name}: ${e.message}`);
      }
    });
  }

  /**
   * The outcome of a save that threw. A script that runs after the save can throw,
   * too, so only a conflict, or a record that is as before, proves that nothing was
   * saved.
   */
  function unsaved(request, key, before, e) {
    if (e.name === 'RCRD_HAS_BEEN_CHANGED') {
      forget(key);
      return refused('target_changed', e.message);
    }
    try {
      const fields = fieldsOf(load(request), request.line);
      if (fields !== null && fields.differing(before).length === 0) {
        forget(key);
        return refused(e.name, e.message);
      }
    } catch (reading) {
      log.error({ title: 'gatehouse: a record could not be read', details: reading.message });
    }
    return inDoubt(request.digest, `${e.name}: ${e.message}`);
  }

  function create(request) {
    const made = (id) => applied({ ...request, ns_internal_id: id }, null, request.fields);
    const there = byExternalId(request.record_type, request.idempotency_key);
    if (there !== null) return { ...made(there), replayed: true };
    let rec;
    try {
      rec = record.create({ type: request.record_type });
      rec.setValue({ fieldId: 'externalid', value: request.idempotency_key });
      const fields = fieldsOf(rec);
      for (const [name, value] of Object.entries(request.fields)) fields.set(name, value);
      for (const [sublistId, lines] of Object.entries(request.lines || {})) {
        lines.forEach((values, line) => {
          for (const [fieldId, value] of Object.entries(values)) {
            const field = rec.getSublistField({ sublistId, fieldId, line });
            if (!field) throw Object.assign(new Error(`no field ${fieldId}`), { name: 'INVALID_FLD_VALUE' });
            rec.setSublistValue({ sublistId, fieldId, line, value: fromWire(field.type, value) });
          }
        });
      }
    } catch (e) {
      return refused(e.name, e.message);
    }
    try {
      return made(rec.save());
    } catch (e) {
      const first = byExternalId(request.record_type, request.idempotency_key);
      return first === null ? refused(e.name, e.message) : { ...made(first), replayed: true };
    }
  }

  function post(request) {
    if (request.protocol !== PROTOCOL) return refused('protocol', `this is ${PROTOCOL}`);
    if (runtime.getCurrentScript().getRemainingUsage() < USAGE) return refused('governance', 'too little usage is left');
    switch (request.do) {
      case 'update': return update(request);
      case 'bulk_update': return bulkUpdate(request);
      case 'create': return create(request);
      default: return refused('invalid', `cannot do ${request.do}`);
    }
  }

  /** Reads one record, or all of refs: ids of records, or RECORD/LINE, with commas between them. */
  function read(request) {
    if (!request.refs) return readOne(request);
    const refs = request.refs.split(',');
    return page(request, refs.length, (i) => {
      const [id, value] = refs[i].split('/');
      return readOne({ ...request, ns_internal_id: id, value });
    });
  }

  function readOne(request) {
    let rec;
    try {
      rec = load(request);
    } catch (e) {
      if (e.name === 'RCRD_DSNT_EXIST') return answer('not_found');
      throw e;
    }
    const line = request.sublist && { sublist: request.sublist, key: request.key, value: request.value };
    const fields = fieldsOf(rec, line);
    if (fields === null) return answer('not_found');
    return answer('found', {
      ns_internal_id: String(request.ns_internal_id), lastmodified: modified(rec), fields: fields.all(request.fields.split(',')),
    });
  }

  function status(request) {
    if (request.operation === 'create') {
      const id = byExternalId(request.record_type, request.idempotency_key);
      return id === null ? answer('none') : answer('applied', { ns_internal_id: id, record_type: request.record_type });
    }
    const of = (found) => {
      if (!found) return answer('none');
      return found.result === null ? inDoubt(found.digest, 'there is no result') : found.result;
    };
    if (request.operation !== 'bulk_update') return of(kept(request.idempotency_key));
    const count = Math.min(Number(request.count), MAX_LINES);
    const found = keptLines(request, count);
    return page(request, count, (i) => of(found.get(lineKey(request, i))));
  }

  function get(request) {
    if (request.protocol !== PROTOCOL) return refused('protocol', `this is ${PROTOCOL}`);
    switch (request.do) {
      case 'read': return read(request);
      case 'status': return status(request);
      case 'ping': return answer('ready');
      default: return refused('invalid', `cannot do ${request.do}`);
    }
  }

  return { get, post };
});
