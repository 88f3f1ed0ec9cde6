// A target that accepts everything, for changes that do not fit the shop's ledger. A request to /named/
// gets the value of its field "said" as the id; a request to /lost/ gets no answer, only a closed connection.
import { createServer } from "node:http";
import { after } from "node:test";

/** Starts the target; received collects the bodies of the requests. */
export async function elsewhere() {
  const received = [];
  const server = createServer((req, res) => {
    let body = "";
    req.on("data", (chunk) => (body += chunk));
    req.on("end", () => {
      received.push(body);
      if (req.url.startsWith("/lost/")) return req.socket.destroy();
      res.setHeader("Content-Type", "application/json");
      res.end(req.url.startsWith("/named/") ? JSON.stringify({ id: JSON.parse(body).said }) : "{}");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  // Adds the connector "elsewhere" to the configuration.
  const configure = (text) => text.replace("\ndispatch:", `
  elsewhere:
    type: http
    base_url: http://127.0.0.1:${server.address().port}
    allow_private: true
    operations:
      put: {method: PUT, path: "/things/{entity_ref}", class: A}
      name: {method: PUT, path: "/named/{entity_ref}", class: A, external_id: /id}
      lose: {method: POST, path: "/lost/{entity_ref}", class: C}
dispatch:`);
  return { received, configure };
}

/** A proposal for this target. */
export const put = (ref, change) => ({
  connector: "elsewhere", operation: "put", target: { entity_type: "thing", entity_ref: ref }, current_state: undefined,
    ...change,
});
