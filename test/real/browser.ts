/** Headless Chromium from Debian, controlled with the DevTools protocol. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { WebSocket } from "ws";
import { temporaryDirectory } from "../support/temporary-directory.ts";

export interface Appearance {
  readonly width: number;
  readonly height: number;
  readonly scheme: "light" | "dark";
}

export interface Shot {
  readonly png: Buffer;
  /** The mean of all pixels, from 0 (black) to 255 (white). */
  readonly brightness: number;
}

/** One tab of a browser. */
export interface Tab {
  /** Opens a URL as if a person had typed it. Resolves when the page is loaded. */
  open(url: string, appearance?: Appearance): Promise<void>;
  /** Evaluates an expression in the page. */
  evaluate(expression: string): Promise<unknown>;
  /** Types a text where the focus is. */
  type(text: string): Promise<void>;
  /** Presses a key where the focus is. Enter in a form sends it. */
  press(key: "Enter" | "Tab"): Promise<void>;
  /** The cookies that the browser would send to the page, hidden ones too. */
  cookies(): Promise<readonly Cookie[]>;
  /** Takes a screenshot of the entire page, including the part below the window. Leaves the page. */
  screenshot(): Promise<Shot>;
  /** Errors in the browser's log, such as a style that the page's policy forbids. */
  readonly complaints: readonly string[];
}

/** A cookie, as the browser keeps it. */
interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly secure: boolean;
  readonly httpOnly: boolean;
  readonly sameSite?: string;
}

/** A browser, and its first tab. */
export interface Browser extends Tab, AsyncDisposable {
  /** Opens a further tab, which shares the cookies. */
  tab(): Promise<Tab>;
}

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
  readonly params?: { readonly entry?: { readonly text?: string } };
}

const CHROMIUM = "chromium";
const DESKTOP: Appearance = { width: 1_000, height: 800, scheme: "light" };
/** What Chromium must know about a key, so that it has its effect. */
const KEYS = {
  Enter: { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" },
  Tab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 },
};

const BRIGHTNESS = `async (data) => {
  const bitmap = await createImageBitmap(await (await fetch(data)).blob());
  const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data: pixels } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  let sum = 0;
  for (let at = 0; at < pixels.length; at += 4) sum += pixels[at] + pixels[at + 1] + pixels[at + 2];
  return sum / (pixels.length / 4) / 3;
}`;

/** Starts the browser. @param more flags for Chromium. */
export async function startBrowser(...more: string[]): Promise<Browser> {
  const profile = await temporaryDirectory();
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", ...more];
  const child = spawn(
    CHROMIUM,
    [...flags, `--user-data-dir=${profile.path}`, "--remote-debugging-port=0", "about:blank"],
    // It leads a process group, so that its renderers and helpers, which also write to the profile, end with it.
    { stdio: ["ignore", "ignore", "pipe"], detached: true },
  );
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const address = await new Promise<URL>((resolve, reject) => {
    child.once("error", reject);
    createInterface({ input: child.stderr }).on("line", (line) => {
      const found = /DevTools listening on (ws:\S+)/.exec(line)?.[1];
      if (found !== undefined) resolve(new URL(found));
    });
  });
  const close = async (): Promise<void> => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await exited;
    await profile.close();
  };
  try {
    const pages = (await (await fetch(`http://${address.host}/json/list`)).json()) as {
      readonly type: string;
      readonly webSocketDebuggerUrl: string;
    }[];
    const page = pages.find(({ type }) => type === "page");
    if (page === undefined) throw new Error("the browser has no page");
    return {
      ...(await controlled(page.webSocketDebuggerUrl)),
      async tab() {
        const method = { method: "PUT" };
        const made = await fetch(`http://${address.host}/json/new?about:blank`, method);
        const { webSocketDebuggerUrl } = (await made.json()) as { webSocketDebuggerUrl: string };
        return controlled(webSocketDebuggerUrl);
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function controlled(url: string): Promise<Tab> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  const complaints: string[] = [];
  let loaded = Promise.withResolvers<void>();
  let last = 0;
  socket.on("message", (data: Buffer) => {
    const { id, method, result = {}, error, params } = JSON.parse(data.toString()) as Reply;
    if (method === "Page.loadEventFired") loaded.resolve();
    if (method === "Log.entryAdded") complaints.push(params?.entry?.text ?? "");
    if (id === undefined) return;
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(error.message));
    waiting.delete(id);
  });
  const send = (method: string, params: object = {}): Promise<Record<string, unknown>> => {
    last += 1;
    const reply = Promise.withResolvers<Record<string, unknown>>();
    waiting.set(last, reply);
    socket.send(JSON.stringify({ id: last, method, params }));
    return reply.promise;
  };
  const evaluate = async (expression: string): Promise<unknown> => {
    const reply = await send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    return (reply["result"] as { readonly value: unknown }).value;
  };
  const open = async (address: string): Promise<void> => {
    loaded = Promise.withResolvers();
    await send("Page.navigate", { url: address });
    await loaded.promise;
  };
  await send("Page.enable");
  await send("Log.enable");
  // Like a window that a person looks at: its focus is shown.
  await send("Emulation.setFocusEmulationEnabled", { enabled: true });
  return {
    complaints,
    evaluate,
    async type(text) {
      await send("Input.insertText", { text });
    },
    async press(key) {
      await send("Input.dispatchKeyEvent", { type: "keyDown", ...KEYS[key] });
      await send("Input.dispatchKeyEvent", { type: "keyUp", ...KEYS[key] });
    },
    async cookies() {
      const { cookies } = await send("Network.getCookies");
      return cookies as readonly Cookie[];
    },
    async open(address, { width, height, scheme } = DESKTOP) {
      const metrics = { width, height, deviceScaleFactor: 1, mobile: width < 500 };
      await send("Emulation.setDeviceMetricsOverride", metrics);
      const features = [{ name: "prefers-color-scheme", value: scheme }];
      await send("Emulation.setEmulatedMedia", { features });
      await open(address);
    },
    async screenshot() {
      const { data } = (await send("Page.captureScreenshot", {
        format: "png",
        captureBeyondViewport: true,
      })) as { readonly data: string };
      // A blank page may read the image; the policy of the page itself forbids it.
      await open("about:blank");
      const brightness = await evaluate(`(${BRIGHTNESS})("data:image/png;base64,${data}")`);
      return { png: Buffer.from(data, "base64"), brightness: Number(brightness) };
    },
  };
}
