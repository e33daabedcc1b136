/** The recipes for Prometheus and for a single-page application, in Debian's Chromium. */
import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { listening } from "../support/listening.ts";
import { missing, startProgram } from "../support/program.ts";
import { ALICE } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { startBrowser } from "./browser.ts";
import { signIn, statusOf, textOf } from "./person.ts";
import { recipeBlock, recipeCommand, startRecipe } from "./recipe.ts";

const withoutPrometheus = missing("chromium", "prometheus");
describe.skipIf(withoutPrometheus !== undefined)(`Prometheus ${withoutPrometheus ?? ""}`, () => {
  it("lets people in with a session, and programs with a token", async () => {
    await using directory = await temporaryDirectory();
    const file = await directory.write("prometheus.yml", "{}");
    const port = await freePort();
    await using prometheus = startProgram("prometheus", [
      ...recipeCommand(
        "prometheus",
        "prometheus",
        ["prometheus.yml", file],
        ["127.0.0.1:9090", `127.0.0.1:${port}`],
      ),
      `--storage.tsdb.path=${directory.path}/tsdb`,
    ]);
    await until(() => {
      if (prometheus.exited()) throw new Error(prometheus.output());
      return ask({ port }, "/prometheus/-/ready").then(
        ({ status }) => status === 200,
        () => false,
      );
    }, 20_000);
    await using gate = await startRecipe("prometheus", `http://127.0.0.1:${port}`, []);

    await using browser = await startBrowser("--ignore-certificate-errors");
    const graph = `https://localhost:${gate.port}/prometheus/graph?g0.expr=vector(17)&g0.tab=1`;
    await browser.open(graph);
    expect(await statusOf(browser)).toBe(401);
    await signIn(browser, ALICE.username, ALICE.password);
    expect(await browser.evaluate("location.href")).toContain("/prometheus/");
    expect(await statusOf(browser)).toBe(200);
    expect(await browser.evaluate("document.title")).toContain("Prometheus");
    const query = "/prometheus/api/v1/query?query=vector(17)";
    const byPerson = `fetch(${JSON.stringify(query)}).then((answer) => answer.text())`;
    expect(await browser.evaluate(byPerson)).toContain('"17"');

    expect((await ask(gate, query, { token: gate.token })).body).toContain('"17"');
    expect((await ask(gate, query)).status).toBe(401);
    expect((await ask(gate, "/prometheus/-/healthy")).status).toBe(200);
    for (const path of ["/prometheus/-/quit", "/prometheus/api/v1/admin/tsdb/snapshot"]) {
      expect((await ask(gate, path, { method: "POST", token: gate.token })).status).toBe(403);
    }
    expect(prometheus.exited()).toBe(false);
  });
});

const withoutChromium = missing("chromium");
describe.skipIf(withoutChromium !== undefined)(`an application ${withoutChromium ?? ""}`, () => {
  it("signs people in by its own form, knows who they are, and notices the end", async () => {
    const page = recipeBlock("single-page-application", "<!doctype html>");
    await using app = await listening(
      createServer(({ url, headers }, response) => {
        const isData = url?.startsWith("/api/") === true;
        response.setHeader("content-type", isData ? "text/plain" : "text/html");
        response.end(isData ? `orders of ${String(headers["x-auth-subject"])}` : page);
      }),
    );
    await using gate = await startRecipe("single-page-application", app.url, []);
    await using browser = await startBrowser("--ignore-certificate-errors");
    const says = (text: string) => until(async () => (await textOf(browser)).includes(text));
    const submit = async (password: string): Promise<void> => {
      await browser.evaluate(
        "form = document.querySelector('form'); form.reset(); form[0].focus()",
      );
      await browser.type(ALICE.username);
      await browser.press("Tab");
      await browser.type(password);
      await browser.press("Enter");
    };
    const orders = "ask('/api/orders').then((answer) => answer.text())";

    await browser.open(`https://localhost:${gate.port}/`);
    await says("Sign in");
    expect(await browser.evaluate(orders)).toContain('"success":false');
    await submit("wrong");
    await says("Invalid username or password");
    await submit(ALICE.password);
    await says("Signed in as alice");
    expect(await browser.evaluate(orders)).toBe("orders of alice");
    expect(await browser.evaluate("document.cookie")).toBe("");
    await browser.evaluate("document.querySelector('main button').click()");
    await until(async () => (await browser.evaluate("document.forms[0].hidden")) === false);
    expect(await browser.evaluate(orders)).toContain('"success":false');
  });
});
