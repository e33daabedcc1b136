/** What a person does with the pages in a browser. */
import { until } from "../support/until.ts";
import type { Tab } from "./browser.ts";

/** How long a page may take: JupyterLab's is large. */
const PAGE_MS = 30_000;

/** Waits until the tab shows a loaded page whose address matches, after as many redirects as it takes. */
export async function arrivedAt(tab: Tab, address: RegExp): Promise<void> {
  let last: unknown;
  await until(async () => {
    last = await tab
      .evaluate("document.readyState === 'complete' ? location.href : ''")
      .catch(String);
    return address.test(String(last));
  }).catch(() => {
    throw new Error(`arrived at ${String(last)}, and not at ${address}`);
  });
}

/** The status of the page that the tab shows. */
export async function statusOf(tab: Tab): Promise<unknown> {
  return tab.evaluate("performance.getEntriesByType('navigation')[0].responseStatus");
}

/** The text that the tab shows. */
export async function textOf(tab: Tab): Promise<string> {
  return String(await tab.evaluate("document.body.innerText"));
}

/** Does something that leads to another page, and waits until that is loaded. */
async function leaving(tab: Tab, act: () => Promise<unknown>): Promise<void> {
  await tab.evaluate("window.stale = true");
  await act();
  // Between two pages there is none to ask.
  const ready = "window.stale === undefined && document.readyState === 'complete'";
  await until(() => tab.evaluate(ready).then(Boolean, () => false), PAGE_MS);
}

/** Clicks the first element that matches, and waits for the page behind it. */
export function click(tab: Tab, selector: string): Promise<void> {
  const element = `document.querySelector(${JSON.stringify(selector)})`;
  return leaving(tab, () => tab.evaluate(`setTimeout(() => ${element}.click())`));
}

/** Types a name and a password into the form that the tab shows, by keyboard alone, and sends it. */
export async function signIn(tab: Tab, username: string, password: string): Promise<void> {
  // Browsers move the focus there with the first picture of the page, which may come after its load.
  await until(async () => (await tab.evaluate("document.activeElement.tagName")) === "INPUT");
  await tab.type(username);
  await tab.press("Tab");
  await tab.type(password);
  await leaving(tab, () => tab.press("Enter"));
}

/** Opens a WebSocket in the page, under a name. @returns whether it is open. */
export async function openSocket(tab: Tab, path: string, name = "socket"): Promise<boolean> {
  const opened = await tab.evaluate(`new Promise((resolve) => {
    const socket = new WebSocket(new URL(${JSON.stringify(path)}, location.href.replace(/^http/, "ws")));
    window[${JSON.stringify(name)}] = { open: true };
    socket.onopen = () => resolve(true);
    socket.onclose = ({ code }) => {
      window[${JSON.stringify(name)}] = { open: false, code, at: Date.now() };
      resolve(false);
    };
  })`);
  return opened === true;
}

/** Waits until a WebSocket of the page has closed. @returns when that was, in milliseconds since the epoch. */
export async function socketClosed(tab: Tab, name = "socket"): Promise<number> {
  const socket = `window[${JSON.stringify(name)}]`;
  await until(async () => (await tab.evaluate(`${socket}.open`)) === false);
  return Number(await tab.evaluate(`${socket}.at`));
}
