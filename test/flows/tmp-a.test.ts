import { connect } from "node:net";
import { afterAll, beforeAll, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
let backend: EchoBackend; let gate: Sallyport; let plain: Sallyport;
const out = (...a: unknown[]) => process.stderr.write("@@ " + a.map((x) => typeof x === "string" ? x : JSON.stringify(x)).join(" ") + "\n");
beforeAll(async () => {
  backend = await startEchoBackend();
  const routes = [
    { name: "public", path: "/public/", auth: "none", upstream: "app" },
    { name: "posts", path: "/posts", methods: ["GET"], auth: "none", upstream: "app" },
    { name: "inner", path: "/inner/", auth: "none", networks: { allow: ["127.0.0.0/8"] }, upstream: "app" },
    { name: "shop", path: "/", hosts: ["shop.example.com"], auth: "none", upstream: "app" },
    { name: "small", path: "/small", auth: "none", limits: { body: "1KB" }, upstream: "app" },
    { name: "everything", path: "/", upstream: "app" },
  ];
  const mk = async (server: object) => {
    for (const drop of [[], ["small"], ["small", "inner"]]) {
      try { return await startSallyport({ target: backend.url, config: { decisions: { from: ["127.0.0.0/8"] }, browser: {}, cors: { origins: ["https://spa.example"], credentials: true, headers: ["authorization"] },  routes: routes.filter((r) => !drop.includes(r.name)), server } }); }
      catch (e) { out("start", String(e).slice(0, 600)); }
    }
    throw new Error("no start");
  };
  gate = await mk({ http2: true });
  plain = await mk({ tls: "off" });
});
afterAll(async () => { await gate.close(); await plain.close(); await backend.close(); });
const D = "/_sallyport/decide";
const show = (n: string, a: any) => out(n, a.status, a.headers && { s: a.headers["x-auth-subject"], g: a.headers["grpc-status"], c: a.headers.connection, sc: a.headers["set-cookie"] }, String(a.body).slice(0, 120));
it("a", async () => {
  const h2 = await connectHttp2(gate);
  show("grpc h2 POST no token", await h2.ask({ ":method": "POST", ":path": D + "/orders", "content-type": "application/grpc" }, ""));
  show("grpc h2 via x-original-uri", await h2.ask({ ":method": "POST", ":path": D, "x-original-uri": "/orders", "content-type": "application/grpc" }, ""));
  show("h2 plain no token", await h2.ask({ ":method": "GET", ":path": D + "/orders" }));
  show("envoy DELETE + X-Forwarded-Method GET", await ask(gate, D + "/posts", { method: "DELETE", headers: { "X-Forwarded-Method": "GET" } }));
  show("envoy host + X-Forwarded-Host shop", await ask(gate, D + "/orders", { headers: { host: "admin.example.com", "X-Forwarded-Host": "shop.example.com" } }));
  show("envoy X-Original-URL host", await ask(gate, D + "/orders", { headers: { host: "admin.example.com", "X-Original-URL": "https://shop.example.com/orders" } }));
  show("network without XFF", await ask(gate, D, { headers: { "X-Original-URI": "/inner/x" } }));
  show("network with garbage XFF", await ask(gate, D, { headers: { "X-Original-URI": "/inner/x", "X-Forwarded-For": "203.0.113.5, unknown" } }));
  show("alias X_Auth_Subject", await ask(gate, D, { headers: { "X-Original-URI": "/public/x", X_Auth_Subject: "root" } }));
  show("alias X.Auth.Subject", await ask(gate, D, { headers: { "X-Original-URI": "/public/x", "X.Auth.Subject": "root" } }));
  show("Connection: X-Auth-Subject", await ask(gate, D, { headers: { "X-Original-URI": "/public/x", Connection: "close, X-Auth-Subject" } }));
  show("query with list", await ask(gate, D, { headers: { "X-Original-URI": "/public/x?, /orders" } }));
  show("query with space", await ask(gate, D, { headers: { "X-Original-URI": "/public/x?a HTTP/1.1 b" } }));
  show("query with latin1", await ask(gate, D, { headers: { "X-Original-URI": "/public/x?\u00e4" } }));
  show("query with tab", await ask(gate, D, { headers: { "X-Original-URI": "/public/x?\tb" } }));
  show("body over limit", await ask(gate, D, { method: "POST", body: "x".repeat(5000), headers: { "X-Original-URI": "/small" } }));
  show("body over limit product", await ask(gate, "/small", { method: "POST", body: "x".repeat(5000) }));
  show("preflight", await ask(gate, D + "/orders", { method: "OPTIONS", headers: { origin: "https://spa.example", "access-control-request-method": "GET" } }));
  show("preflight product", await ask(gate, "/orders", { method: "OPTIONS", headers: { origin: "https://spa.example", "access-control-request-method": "GET" } }));
  show("CONNECT named", await ask(gate, D, { headers: { "X-Original-URI": "/public/x", "X-Original-Method": "CONNECT" } }));
  show("TRACE named", await ask(gate, D, { headers: { "X-Original-URI": "/public/x", "X-Original-Method": "TRACE" } }));
  show("get named lower", await ask(gate, D, { headers: { "X-Original-URI": "/public/x", "X-Original-Method": "get" } }));
  show("HEAD", await ask(gate, D + "/public/x", { method: "HEAD" }));
  for (const p of ["/_sallyport/decide;x", "/_sallyport//decide", "/_sallyport/%64ecide/public/x", "/_sallyport/decide?/../orders", "/_sallyport/decide%2fpublic/x", "/_sallyport/decide/public/x?y#z", "/_sallyport/decide//public/x", "/_sallyport/decide/", "/_sallyport/./decide"])
    show(p, await ask(gate, p));
});
async function raw(text: string, ms = 1500): Promise<string> {
  const s = connect(plain.port, "127.0.0.1"); let got = ""; s.on("data", (c) => (got += c)); s.on("error", (e) => (got += String(e))); s.on("close", () => (got += "<closed>"));
  s.write(text); await new Promise((r) => setTimeout(r, ms)); s.destroy(); return got.replaceAll("\r\n", "|");
}
it("raw", async () => {
  const q = (t: string, more = "") => `GET ${D} HTTP/1.1\r\nHost: a\r\nX-Original-URI: ${t}\r\n${more}\r\n`;
  out("upgrade", await raw(q("/public/x", "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n") + q("/orders")));
  out("CL without body, next question eaten", await raw(q("/public/x", "Content-Length: 180\r\n"), 100));
  // client sends CL: n, asker passes the head only; the next question (victim's) is eaten up to byte n
  const victim = `GET ${D} HTTP/1.1\r\nHost: a\r\nX-Original-URI: /admin\r\nX-Smuggle: `;
  out("desync", await raw(q("/public/a", `Content-Length: ${victim.length}\r\n`) + victim + `GET ${D} HTTP/1.1\r\nHost: a\r\nX-Original-URI: /public/b\r\n\r\n`, 500));
  out("expect", await raw(q("/public/x", "Expect: 100-continue\r\nContent-Length: 5\r\n"), 500));
  out("absolute", await raw(`GET http://a${D}/public/x HTTP/1.1\r\nHost: a\r\n\r\n`, 300));
  out("http/1.0 no host", await raw(`GET ${D}/public/x HTTP/1.0\r\n\r\n`, 300));
  out("X-Forwarded-Host other case dup", await raw(`GET ${D} HTTP/1.1\r\nHost: a\r\nX-Original-URI: /public/x\r\nx-original-uri: /orders\r\n\r\n`, 300));
  out("h2c prior CONNECT", await raw(`CONNECT ${D}/public/x HTTP/1.1\r\nHost: a\r\n\r\n`, 300));
});
