import { writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import { afterAll, beforeAll, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
let backend: EchoBackend; let gate: Sallyport;
const out = (...a: unknown[]) => process.stderr.write("@@ " + a.map((x) => typeof x === "string" ? x : JSON.stringify(x)).join(" ") + "\n");
const routes = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "inner", path: "/inner/", auth: "none", allow: ["127.0.0.0/8"], upstream: "app" },
  { name: "strict", path: "/hdr/", headers: { "X-Forwarded-Uri": "/hdr/x" }, upstream: "app" },
  { name: "hdr", path: "/hdr/", auth: "none", upstream: "app" },
  { name: "small", path: "/small", auth: "none", limits: { bodyBytes: "1KiB" }, upstream: "app" },
  { name: "one", path: "/one", auth: "none", concurrency: { requests: 1, by: "route" }, upstream: "app" },
  { name: "everything", path: "/", upstream: "app" },
];
const D = "/_sallyport/decide";
beforeAll(async () => {
  backend = await startEchoBackend();
  for (const drop of [[], ["one"], ["one", "strict"], ["one", "strict", "small"]]) {
    try { gate = await startSallyport({ target: backend.url, config: { decisions: { from: ["127.0.0.0/8"] }, browser: {}, routes: routes.filter((r) => !drop.includes(r.name)), server: { http2: true } } }); out("dropped", drop); break; }
    catch (e: any) { out("start", String(e), String(e?.output ?? e?.stderr ?? "").slice(0, 500)); }
  }
});
afterAll(async () => { await gate.close(); await backend.close(); });
const show = (n: string, a: any) => out(n, a.status, { s: a.headers["x-auth-subject"], g: a.headers["grpc-status"], c: a.headers.connection }, String(a.body).slice(0, 100));
it("a", async () => {
  show("network, no XFF", await ask(gate, D, { headers: { "X-Original-URI": "/inner/x" } }));
  show("network, XFF garbage", await ask(gate, D, { headers: { "X-Original-URI": "/inner/x", "X-Forwarded-For": "203.0.113.5, unknown" } }));
  show("network, XFF outside", await ask(gate, D, { headers: { "X-Original-URI": "/inner/x", "X-Forwarded-For": "203.0.113.5" } }));
  show("network, X-Real-IP/Forwarded only", await ask(gate, D, { headers: { "X-Original-URI": "/inner/x", "X-Real-IP": "203.0.113.5", Forwarded: "for=203.0.113.5" } }));
  show("body 5000 declared, limit 1 KiB", await ask(gate, D, { method: "POST", body: "x".repeat(5000), headers: { "X-Original-URI": "/small" } }));
  show("product", await ask(gate, "/small", { method: "POST", body: "x".repeat(5000) }));
  show("hdr product", await ask(gate, "/hdr/x", { headers: { "X-Forwarded-Uri": "/hdr/x" } }));
  show("hdr question", await ask(gate, D, { headers: { "X-Forwarded-Uri": "/hdr/x" } }));
  const form = { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" };
  const login = await ask(gate, "/_sallyport/login", { method: "POST", headers: form, body: new URLSearchParams({ username: "alice", password: "correct horse battery staple" }).toString() });
  const cookie = login.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
  const cs = { cookie, origin: "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "websocket" };
  show("cross-site websocket without key (headers filtered)", await ask(gate, D + "/orders", { headers: cs }));
  show("cross-site websocket upgrade field kept", await ask(gate, D + "/orders", { headers: { ...cs, "sec-websocket-version": "13" } }));
  show("named CONNECT, cross-site cookie", await ask(gate, D, { headers: { ...cs, "X-Forwarded-Method": "CONNECT", "X-Forwarded-Uri": "/orders" } }));
  show("cookie POST, Origin=XFHost evil", await ask(gate, D, { headers: { cookie, origin: "https://evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/orders" } }));
  const h2 = await connectHttp2(gate);
  try { show("h2 extended connect", await Promise.race([h2.ask({ ":method": "CONNECT", ":protocol": "websocket", ":path": D + "/public/x", ":scheme": "https", ":authority": "localhost" }), new Promise<any>((_, r) => setTimeout(() => r("timeout"), 3000))])); } catch (e) { out("h2 ext connect", String(e)); }
  try { show("h2 extended connect orders", await Promise.race([h2.ask({ ":method": "CONNECT", ":protocol": "websocket", ":path": D + "/orders", ":scheme": "https", ":authority": "localhost" }), new Promise<any>((_, r) => setTimeout(() => r("timeout"), 3000))])); } catch (e) { out("h2 ext connect", String(e)); }
  show("h2 authority vs host", await h2.ask({ ":method": "GET", ":path": D + "/public/x", ":authority": "a.example", host: "b.example" }).catch((e) => ({ status: 0, headers: {}, body: String(e) })));
  for (let i = 0; i < 5; i++) show("concurrency", await ask(gate, D + "/one"));
  show("login path", await ask(gate, D, { headers: { "X-Original-URI": "/api/authenticate", "X-Original-Method": "POST" } }));
  show("logout leaves", await ask(gate, D, { method: "POST", headers: { "X-Original-URI": "/_sallyport/logout", "sec-fetch-site": "same-origin" } }));
  // through a product that is also proxied: client asks itself
  show("client with own cookie asks via proxy", await ask(gate, D + "/orders", { headers: { cookie, "X-Forwarded-For": "203.0.113.5", "sec-fetch-site": "same-origin" } }));
});
it("reload while asked", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  const statuses: Record<string, number> = {};
  let on = true;
  const loop = async () => { while (on) { const s = await ask(gate, D + "/orders", { agent, headers: { authorization: `Bearer ${gate.token}` } }).then((a) => `${a.status} ${a.headers["x-auth-subject"]}`, (e) => "E " + e.code); statuses[s] = (statuses[s] ?? 0) + 1; } };
  const all = Array.from({ length: 10 }, loop);
  for (let i = 0; i < 4; i++) { gate.signal("SIGHUP"); await new Promise((r) => setTimeout(r, 400)); }
  on = false; await Promise.all(all); agent.destroy();
  out("reload", statuses);
  await new Promise((r) => setTimeout(r, 300));
  const text: any = await scrape(gate);
  out("in flight", String(text.text ?? "").split("\n").filter((l: string) => /in_flight|gates|lease/.test(l)).join(";"), Object.keys(text));
});
