/** People with Debian's Chromium, who sign in by the form, and out: TLS, cookies and forms as browsers treat them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { missing } from "../support/program.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { startWebSocketBackend, type WebSocketBackend } from "../support/websocket.ts";
import { until } from "../support/until.ts";
import { type Browser, startBrowser } from "./browser.ts";
import { click, openSocket, signIn, socketClosed, statusOf, textOf } from "./person.ts";

const reason = missing("chromium");
const SESSION = "__Host-sallyport";

describe.skipIf(reason !== undefined)(`in Chromium ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let backend: WebSocketBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    backend = stack.use(await startWebSocketBackend());
    const config = { browser: { page: { title: "Orders" } } };
    gate = stack.use(await startSallyport({ target: backend.url, config, withoutToken: true }));
  });
  afterAll(() => stack.disposeAsync());

  const start = (): Promise<Browser> => startBrowser("--ignore-certificate-errors");
  const at = (path: string): string => `https://localhost:${gate.port}${path}`;
  const sessions = async (tab: Browser): Promise<number> =>
    (await tab.cookies()).filter(({ name }) => name === SESSION).length;

  it("a person signs in by keyboard, and comes back to the page, with a cookie that scripts cannot read", async () => {
    await using browser = await start();
    await browser.open(at("/orders/17?view=all"));
    expect(await statusOf(browser)).toBe(401);
    const focused = "document.querySelector('[name=username]').matches(':focus-visible')";
    await until(async () => (await browser.evaluate(focused)) === true);
    await signIn(browser, ALICE.username, ALICE.password);
    expect(await browser.evaluate("location.href")).toBe(at("/orders/17?view=all"));
    expect(await textOf(browser)).toBe("no websocket");
    expect(await browser.cookies()).toMatchObject([
      { name: SESSION, secure: true, httpOnly: true, sameSite: "Lax" },
    ]);
    expect(await browser.evaluate("document.cookie")).toBe("");
    const complaints = browser.complaints.filter((text) => !text.includes("status of 401"));
    expect(complaints).toEqual([]);
  });

  it("with a wrong password, the page says so, has the focus in the form, and sets no cookie", async () => {
    await using browser = await start();
    await browser.open(at("/orders/17"));
    await signIn(browser, ALICE.username, "wrong");
    expect(await statusOf(browser)).toBe(401);
    const alert = "document.querySelector('[role=alert]').innerText";
    expect(await browser.evaluate(alert)).toBe("Invalid username or password");
    await until(async () => (await browser.evaluate("document.activeElement.name")) === "username");
    expect(await sessions(browser)).toBe(0);
    // The page in the address bar is that of the form: the way to the page is kept by the form itself.
    await signIn(browser, ALICE.username, ALICE.password);
    expect(await browser.evaluate("location.href")).toBe(at("/orders/17"));
  });

  it("after too many wrong passwords, the page says how long to wait", async () => {
    await using other = await startSallyport({
      target: backend.url,
      config: { browser: {}, login: { throttle: { attempts: 2, ban: "3m" } } },
      withoutToken: true,
    });
    await using browser = await start();
    await browser.open(`https://localhost:${other.port}/`);
    for (let attempt = 0; attempt < 3; attempt += 1) await signIn(browser, "alice", "wrong");
    expect(await statusOf(browser)).toBe(429);
    expect(await textOf(browser)).toMatch(/Too many login attempts.* \(in 3 minutes\)/);
    expect(await sessions(browser)).toBe(0);
  });

  it("signing out in one tab ends the WebSocket of another within a second", async () => {
    await using browser = await start();
    await browser.open(at("/"));
    await signIn(browser, ALICE.username, ALICE.password);
    expect(await openSocket(browser, "/chat")).toBe(true);
    const other = await browser.tab();
    // No page of the backend has a button to sign out: an application posts a form.
    await other.open(at("/"));
    await other.evaluate(`document.body.innerHTML =
      '<form method="post" action="/_sallyport/logout"><button>Sign out</button></form>'`);
    const began = Date.now();
    await click(other, "button");
    expect((await socketClosed(browser)) - began).toBeLessThan(1_000);
    expect(await other.evaluate("location.pathname")).toBe("/_sallyport/login");
    expect(await sessions(browser)).toBe(0);
    expect(await openSocket(browser, "/chat", "again")).toBe(false);
  });
});
