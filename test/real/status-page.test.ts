/** The status page in a browser: light, dark and narrow, without scripts, and with hostile requests on it. */
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { mkdir, writeFile } from "node:fs/promises";
import { beforeAll, afterAll, expect, it } from "vitest";
import { ask, askLogin } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { listening } from "../support/listening.ts";
import { missing } from "../support/program.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { type Appearance, type Browser, type Shot, startBrowser } from "./browser.ts";

const WIDE = { width: 1280, height: 1000 };
const HOSTILE = `/x/"'><script>document.title="owned"</script><img/src=x/onerror="document.title='owned'">`;

let browser: Browser;
let backend: EchoBackend;
let gate: Sallyport;

const reason = missing("chromium");

beforeAll(async () => {
  if (reason !== undefined) return;
  [browser, backend] = await Promise.all([startBrowser(), startEchoBackend()]);
  gate = await startSallyport({ target: backend.url });
  await ask(gate, HOSTILE);
  for (let index = 0; index < 5; index += 1) await ask(gate, `/orders/${index}`);
  await askLogin(gate, { ...ALICE, password: "wrong" });
});

afterAll(async () => {
  await gate?.[Symbol.asyncDispose]();
  await Promise.all([browser?.[Symbol.asyncDispose](), backend?.[Symbol.asyncDispose]()]);
});

/** Takes a screenshot. If STATUS_PICTURES names a directory, it is saved there. */
async function shown(name: string, appearance: Appearance): Promise<Shot & { size: number[] }> {
  await browser.open(`http://127.0.0.1:${gate.adminPort}/-/`, appearance);
  const { png, brightness } = await browser.screenshot();
  const directory = process.env["STATUS_PICTURES"];
  if (directory !== undefined) {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, `${name}.png`), png);
  }
  return { png, brightness, size: [png.readUInt32BE(16), png.readUInt32BE(20)] };
}

it.skipIf(reason !== undefined)(
  "is light or dark as the reader prefers, with the same layout",
  async () => {
    const light = await shown("light", { ...WIDE, scheme: "light" });
    const dark = await shown("dark", { ...WIDE, scheme: "dark" });
    expect(light.size[0]).toBe(WIDE.width);
    expect(light.size[1]).toBeGreaterThan(WIDE.height);
    expect(dark.size).toEqual(light.size);
    expect(light.brightness).toBeGreaterThan(215);
    expect(dark.brightness).toBeLessThan(70);
    // A screenshot in a single colour takes a few KB.
    for (const { png } of [light, dark]) expect(png.length).toBeGreaterThan(25_000);
  },
);

it.skipIf(reason !== undefined)("fits into 360 px with any content", async () => {
  await browser.open(`http://127.0.0.1:${gate.adminPort}/-/`, {
    width: 360,
    height: 800,
    scheme: "light",
  });
  await browser.evaluate(
    `document.querySelectorAll("details").forEach((each) => (each.open = true))`,
  );

  const outside = `[...document.body.querySelectorAll("*")]
    .filter((each) => each.getBoundingClientRect().right > 360.5)
    .map((each) => each.outerHTML.slice(0, 120))`;
  expect(await browser.evaluate(outside)).toEqual([]);
  expect(await browser.evaluate("document.documentElement.scrollWidth")).toBe(360);
  const narrow = await shown("narrow", { width: 360, height: 800, scheme: "light" });
  expect(narrow.size[0]).toBe(360);
  expect(narrow.brightness).toBeGreaterThan(200);
});

it.skipIf(reason !== undefined)("shows requests, but never as markup", async () => {
  await browser.open(`http://127.0.0.1:${gate.adminPort}/-/`, { ...WIDE, scheme: "light" });
  const text = String(await browser.evaluate("document.body.innerText"));
  for (const word of ["missing", "bad_credentials", "everything", "/orders/4", "Up for"]) {
    expect(text).toContain(word);
  }
  expect(text).toContain(`<script>document.title="owned"</script>`);
  expect(await browser.evaluate("document.title")).toMatch(/: Sallyport$/);
  expect(
    await browser.evaluate(`document.querySelectorAll("script, img, iframe, form").length`),
  ).toBe(0);
  expect(await browser.evaluate(`document.querySelectorAll("svg rect").length`)).toBeGreaterThan(2);
  // Its policy allows its own style.
  const font = `getComputedStyle(document.querySelector("h1")).fontSize`;
  expect(await browser.evaluate(font)).toBe("22px");
  expect(browser.complaints).toEqual([]);
});

it.skipIf(reason !== undefined)("expands an explanation without a script", async () => {
  await browser.open(`http://127.0.0.1:${gate.adminPort}/-/`, { ...WIDE, scheme: "dark" });
  const opened = await browser.evaluate(`(() => {
    const details = [...document.querySelectorAll(".refusal")].find((each) => each.innerText.includes("/orders/4"));
    details.querySelector("summary").click();
    return details.querySelector("div").innerText;
  })()`);
  for (const word of ["Who may pass", "token", "everything", "sallyport explain --url"]) {
    expect(opened).toContain(word);
  }
});

it.skipIf(reason !== undefined)(
  "has a picture in the README that works in both colour schemes",
  async () => {
    const picture = pathToFileURL(
      resolve(import.meta.dirname, "../../docs/pictures/status-page.svg"),
    );
    const brightness: number[] = [];
    for (const scheme of ["light", "dark"] as const) {
      await browser.open(picture.href, { width: 1000, height: 680, scheme });
      const bars = `document.querySelectorAll("svg rect").length`;
      expect(await browser.evaluate(bars)).toBeGreaterThan(50);
      brightness.push((await browser.screenshot()).brightness);
    }
    expect(brightness[0]).toBeGreaterThan(200);
    expect(brightness[1]).toBeLessThan(80);
  },
);

it.each(["unsafe-none", "same-origin", "noopener-allow-popups"])(
  "is not readable for a page with the opener policy %s that another server left at its address",
  { timeout: 60_000 },
  async (policy) => {
    await using hostile = await startBrowser("--disable-popup-blocking");
    let port = 0;
    {
      const fields = { "cross-origin-opener-policy": policy, "content-type": "text/html" };
      await using server = await listening(
        createServer((_, response) => response.writeHead(200, fields).end("<p>left</p>")),
      );
      port = server.port;
      await hostile.open(`http://127.0.0.1:${port}/`);
    }
    const config = { admin: { listen: `127.0.0.1:${port}` } };
    await using gate = await startSallyport({ withoutToken: true, target: backend.url, config });
    expect(gate.adminPort).toBe(port);
    for (const path of ["/-/", "/-/config", "/-/status"]) {
      // The window may take a while to load.
      const read = `new Promise((done) => {
        const opened = window.open("${path}");
        let looks = 0;
        const look = () => {
          let text = "";
          try { text = opened.document.body.innerText; } catch (error) { text = String(error); }
          if (text !== "" || (looks += 1) > 40) done(text);
          else setTimeout(look, 250);
        };
        setTimeout(look, 250);
      })`;
      const found = await hostile.evaluate(read);
      expect(found).toMatch(/SecurityError|A web page may not ask/);
    }
  },
);
