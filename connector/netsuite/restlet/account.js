// A small in-memory account, with the part of SuiteScript 2.1 that the RESTlet uses: N/record,
// N/search, N/runtime, N/log. It follows NetSuite's documentation: saving a record that was saved
// since it was loaded throws RCRD_HAS_BEEN_CHANGED, external ids are unique by type, values have
// the type of their field. Each call of the RESTlet has 5,000 units of usage and 10 MB for its
// request and its answer; one that uses more is ended, and can catch nothing.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const TYPES = {
  vendor: {
    fields: {
      companyname: 'text', phone: 'phone', email: 'email', comments: 'textarea', creditlimit: 'currency', terms: 'select',
      subsidiary: 'select', currency: 'select', accountnumber: 'text', isinactive: 'checkbox', custentity_since: 'date',
    },
  },
  inventoryitem: {
    fields: { itemid: 'text' },
    sublists: { itemvendor: { vendor: 'select', purchaseprice: 'currency', vendorcode: 'text', preferredvendor: 'checkbox' } },
  },
  salesorder: {
    fields: { entity: 'select', trandate: 'date', shipdate: 'date', otherrefnum: 'text', location: 'select', memo: 'text' },
    sublists: { item: { item: 'select', quantity: 'float', rate: 'currency', amount: 'currency', description: 'text' } },
  },
  customrecord_gatehouse_key: {
    fields: {
      custrecord_gatehouse_digest: 'text', custrecord_gatehouse_action: 'text', custrecord_gatehouse_result: 'clobtext',
    },
  },
};

// The units of usage that an operation takes, by the kind of record.
const UNITS = {
  custom: { create: 2, load: 2, submitFields: 2, save: 4, delete: 4 },
  other: { create: 5, load: 5, submitFields: 5, save: 10, delete: 10 },
  transaction: { create: 10, load: 10, submitFields: 10, save: 20, delete: 20 },
};
const SEARCH_UNITS = 10;
const MAX_TEXT = 10 << 20;

function unitsOf(operation, type) {
  const kind = type.startsWith('customrecord') ? 'custom' : type === 'salesorder' ? 'transaction' : 'other';
  return UNITS[kind][operation];
}

const failure = (name, message) => Object.assign(new Error(message || name), { name });

function checked(type, value) {
  const ok = {
    date: () => value === '' || value instanceof Date,
    checkbox: () => typeof value === 'boolean',
    currency: () => value === '' || Number.isFinite(value),
    float: () => value === '' || Number.isFinite(value),
    select: () => value === '' || /^-?[0-9]+$/.test(String(value)),
  }[type];
  if (ok && !ok()) throw failure('INVALID_FLD_VALUE', `${value} is not a ${type}`);
  return value;
}

class Account {
  constructor() {
    this.rows = new Map(); // by type and id
    this.nextId = 100;
    this.effects = 0;
    this.limit = 5000; // of usage, for each call of the RESTlet
    this.run = { left: this.limit }; // the call under way
    this.used = []; // by each call that has ended
    // Hooks: beforeSave(type, values) may change values or throw; afterSave(type) may throw after
    // everything was saved; beforeSubmitFields() and beforeSearch() may throw.
    this.hooks = {};
  }

  spend(units) {
    if (this.run.dead) throw this.run.dead;
    this.run.left -= units;
    if (this.run.left < 0) this.end('SSS_USAGE_LIMIT_EXCEEDED');
  }

  /** Ends the call under way: whatever the script catches, nothing of it runs any more. */
  end(name) {
    this.run.dead = failure(name);
    throw this.run.dead;
  }

  /** An entry point of a script, as one call with its limits. */
  entry(run) {
    return (argument) => {
      const outer = this.run;
      this.run = { left: this.limit };
      try {
        if (JSON.stringify(argument).length > MAX_TEXT) this.end('UNEXPECTED_ERROR');
        const out = run(argument);
        if (this.run.dead) throw this.run.dead;
        if (JSON.stringify(out).length > MAX_TEXT) this.end('UNEXPECTED_ERROR');
        return out;
      } finally {
        this.used.push(this.limit - this.run.left);
        this.run = outer;
      }
    };
  }

  put(type, id, values, sublists = {}) {
    this.rows.set(`${type}/${id}`, { type, id: String(id), values, sublists, version: 1 });
  }

  row(type, id) {
    const row = this.rows.get(`${type}/${id}`);
    if (!row) throw failure('RCRD_DSNT_EXIST', `there is no ${type} ${id}`);
    return row;
  }

  /** A record object on a copy of a row. */
  open(type, from) {
    const account = this;
    const row = { ...from };
    const kind = TYPES[type];
    if (!kind) throw failure('INVALID_RCRD_TYPE', type);
    const values = { ...row.values };
    const sublists = structuredClone(row.sublists);
    const typeOf = (sublistId, fieldId) => (sublistId ? kind.sublists?.[sublistId]?.[fieldId] : kind.fields[fieldId]);
    return {
      getField: ({ fieldId }) => (typeOf(null, fieldId) ? { type: typeOf(null, fieldId) } : null),
      getSublistField: ({ sublistId, fieldId }) => (typeOf(sublistId, fieldId) ? { type: typeOf(sublistId, fieldId) } : null),
      getValue: ({ fieldId }) => (fieldId === 'lastmodifieddate' ? new Date(Date.UTC(2026, 10, 24, 0, row.version)) : values[fieldId] ?? ''),
      setValue: ({ fieldId, value }) => {
        values[fieldId] = fieldId === 'externalid' ? value : checked(typeOf(null, fieldId), value);
      },
      getLineCount: ({ sublistId }) => (sublists[sublistId] || []).length,
      findSublistLineWithValue: ({ sublistId, fieldId, value }) =>
        (sublists[sublistId] || []).findIndex((line) => String(line[fieldId]) === String(value)),
      getSublistValue: ({ sublistId, fieldId, line }) => sublists[sublistId][line][fieldId] ?? '',
      setSublistValue: ({ sublistId, fieldId, line, value }) => {
        sublists[sublistId] ??= [];
        sublists[sublistId][line] ??= {};
        sublists[sublistId][line][fieldId] = checked(typeOf(sublistId, fieldId), value);
      },
      save: () => account.save(type, row, values, sublists),
    };
  }

  save(type, row, values, sublists) {
    const isKey = type === 'customrecord_gatehouse_key';
    this.spend(unitsOf('save', type));
    if (this.hooks.beforeSave) this.hooks.beforeSave(type, values, sublists);
    const now = row.id && this.rows.get(`${type}/${row.id}`);
    if (row.id && (!now || now.version !== row.version)) throw failure('RCRD_HAS_BEEN_CHANGED', 'the record has been changed');
    for (const other of this.rows.values()) {
      if (values.externalid && other.type === type && other.id !== row.id && other.values.externalid === values.externalid) {
        throw failure('DUP_RCRD', 'this record already exists');
      }
    }
    const id = row.id || String(this.nextId += 1);
    this.rows.set(`${type}/${id}`, { type, id, values, sublists, version: (row.version || 0) + 1 });
    if (!isKey) this.effects += 1;
    if (this.hooks.afterSave) this.hooks.afterSave(type);
    return id;
  }

  modules() {
    const account = this;
    return {
      'N/record': {
        load: ({ type, id }) => {
          account.spend(unitsOf('load', type));
          return account.open(type, account.row(type, id));
        },
        create: ({ type }) => {
          account.spend(unitsOf('create', type));
          return account.open(type, { values: {}, sublists: {}, version: 0 });
        },
        delete: ({ type, id }) => {
          account.spend(unitsOf('delete', type));
          account.row(type, id);
          account.rows.delete(`${type}/${id}`);
        },
        submitFields: ({ type, id, values }) => {
          account.spend(unitsOf('submitFields', type));
          if (account.hooks.beforeSubmitFields) account.hooks.beforeSubmitFields();
          Object.assign(account.row(type, id).values, values);
        },
      },
      'N/search': {
        create: ({ type, filters: [[field, operator, wanted]], columns }) => ({
          run: () => ({
            getRange: ({ start, end }) => {
              account.spend(SEARCH_UNITS);
              if (account.hooks.beforeSearch) account.hooks.beforeSearch();
              if (end - start > 1000) throw failure('SSS_SEARCH_RANGE_TOO_LARGE');
              if (field !== 'externalid' || operator !== 'anyof') throw failure('SSS_INVALID_SRCH_FILTER');
              return [...account.rows.values()]
                .filter((row) => row.type === type && wanted.includes(row.values.externalid))
                .slice(start, end).map((row) => ({
                  id: row.id,
                  // A search cuts long texts.
                  getValue: ({ name }) =>
                    (columns.includes(name) ? String(row.values[name] ?? '').slice(0, 4000) : null),
                }));
            },
          }),
        }),
      },
      'N/runtime': { getCurrentScript: () => ({ getRemainingUsage: () => account.run.left }) },
      'N/log': { error: () => {} },
    };
  }

  /** The RESTlet's entry points, in this account. */
  restlet() {
    const file = path.join(__dirname, 'gatehouse_restlet.js');
    let exported;
    const define = (names, factory) => {
      const modules = this.modules();
      exported = factory(...names.map((name) => modules[name]));
    };
    vm.runInNewContext(fs.readFileSync(file, 'utf8'), { define, Date, Error, Object, Set, Map, JSON, String, Number }, { filename: file });
    return { get: this.entry(exported.get), post: this.entry(exported.post) };
  }
}

module.exports = { Account, failure };
