// A small in-memory account, with the part of SuiteScript 2.1 that the RESTlet uses: N/record,
// N/search, N/runtime, N/log. It follows NetSuite's documentation: saving a record that was saved
// since it was loaded throws RCRD_HAS_BEEN_CHANGED, external ids are unique by type, values have
// the type of their field.
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
    this.usage = 5000;
    // Hooks: beforeSave(type, values) may change values or throw; afterSave(type) may throw after
    // everything was saved; beforeSubmitFields() may throw.
    this.hooks = {};
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
    this.usage -= isKey ? 4 : 20;
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
          account.usage -= 10;
          return account.open(type, account.row(type, id));
        },
        create: ({ type }) => account.open(type, { values: {}, sublists: {}, version: 0 }),
        delete: ({ type, id }) => {
          account.row(type, id);
          account.rows.delete(`${type}/${id}`);
        },
        submitFields: ({ type, id, values }) => {
          if (account.hooks.beforeSubmitFields) account.hooks.beforeSubmitFields();
          Object.assign(account.row(type, id).values, values);
        },
      },
      'N/search': {
        create: ({ type, filters: [[field, operator, wanted]] }) => ({
          run: () => ({
            getRange: ({ start, end }) => {
              if (field !== 'externalid' || operator !== 'anyof') throw failure('SSS_INVALID_SRCH_FILTER');
              return [...account.rows.values()]
                .filter((row) => row.type === type && wanted.includes(row.values.externalid))
                .slice(start, end).map((row) => ({ id: row.id }));
            },
          }),
        }),
      },
      'N/runtime': { getCurrentScript: () => ({ getRemainingUsage: () => account.usage }) },
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
    return exported;
  }
}

module.exports = { Account, failure };
