// Draws /openapi.json. Everything from the document goes in as text nodes.
"use strict";

const el = (tag, attrs, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs || {})) node.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
};

const refName = (ref) => ref.slice(ref.lastIndexOf("/") + 1);

// typeNode names a schema in one line, with a link where it has a name.
function typeNode(schema) {
  if (!schema) return "any";
  if (schema.$ref) return el("a", { href: "#schema-" + refName(schema.$ref) }, refName(schema.$ref));
  if (schema.anyOf) {
    const span = el("span");
    schema.anyOf.forEach((s, i) => span.append(i ? " or " : "", typeNode(s)));
    return span;
  }
  if (schema.enum) return schema.enum.join(" | ");
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type;
  if (schema.items) return el("span", {}, "list of ", typeNode(schema.items));
  return (type || "any") + (schema.format ? " (" + schema.format + ")" : "");
}

function table(head, rows) {
  const t = el("table");
  t.append(el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))));
  t.append(el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((c) => el("td", {}, c))))));
  return t;
}

function operation(method, path, op) {
  const section = el("section", { id: op.operationId });
  section.append(el("h3", {}, el("b", {}, method.toUpperCase()), " " + path));
  section.append(el("p", {}, op.summary), el("p", {}, op.description || ""));
  if (op.parameters) {
    section.append(el("h4", {}, "Parameters"), table(["name", "in", "type", ""],
      op.parameters.map((p) => [el("code", {}, p.name), p.in, typeNode(p.schema), p.description || ""])));
  }
  if (op.requestBody) {
    const schema = op.requestBody.content["application/json"].schema;
    section.append(el("h4", {}, "Body" + (op.requestBody.required ? "" : " (optional)")), el("p", {}, typeNode(schema)));
  }
  section.append(el("h4", {}, "Answers"), table(["status", "body", ""],
    Object.entries(op.responses).map(([status, r]) => {
      const [content] = Object.values(r.content || {});
      return [el("code", {}, status), content ? typeNode(content.schema) : "", r.description];
    })));
  return section;
}

function schemaSection(name, schema) {
  const section = el("section", { id: "schema-" + name });
  section.append(el("h3", {}, name));
  if (schema.description) section.append(el("p", {}, schema.description));
  const required = new Set(schema.required || []);
  section.append(table(["member", "type", ""], Object.entries(schema.properties || {}).map(([member, s]) =>
    [el("code", {}, member), typeNode(s), (required.has(member) ? "always. " : "") + (s.description || "")])));
  return section;
}

function errorsSection(doc) {
  const where = {};
  for (const item of Object.values(doc.paths)) {
    for (const op of Object.values(item)) {
      for (const [status, r] of Object.entries(op.responses)) {
        for (const code of r["x-codes"] || []) {
          where[code] = where[code] || { status, ops: [] };
          where[code].ops.push(op.operationId);
        }
      }
    }
  }
  const codes = doc.components.schemas.Problem.properties.code.enum;
  return codes.map((code) => {
    const section = el("section", { id: code });
    section.append(el("h3", {}, code));
    if (where[code]) section.append(el("p", {}, "Status " + where[code].status + ", from " + where[code].ops.join(", ") + "."));
    return section;
  });
}

async function main() {
  const answer = await fetch("/openapi.json");
  if (!answer.ok) throw new Error("the document answered " + answer.status);
  const doc = await answer.json();
  document.getElementById("version").textContent = doc.info.version;
  document.getElementById("about").prepend(doc.info.description + " ");
  const index = document.getElementById("index");
  const content = document.getElementById("content");
  content.replaceChildren();
  for (const { name: tag } of doc.tags) {
    index.append(el("h2", {}, tag));
    content.append(el("h2", {}, tag));
    for (const [path, item] of Object.entries(doc.paths)) {
      for (const [method, op] of Object.entries(item)) {
        if (!op.tags.includes(tag)) continue;
        index.append(el("a", { href: "#" + op.operationId }, op.operationId));
        content.append(operation(method, path, op));
      }
    }
  }
  index.append(el("h2", {}, "Reference"), el("a", { href: "#errors" }, "Error codes"), el("a", { href: "#schemas" }, "Schemas"));
  content.append(el("h2", { id: "errors" }, "Error codes"), ...errorsSection(doc));
  content.append(el("h2", { id: "schemas" }, "Schemas"),
    ...Object.entries(doc.components.schemas).map(([name, schema]) => schemaSection(name, schema)));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

main().catch((err) => {
  document.getElementById("content").replaceChildren(el("p", {}, "The document could not be read: " + err.message));
});
