import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { startRawBackend, type RawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";

const PATHS = ["/api/v1/version", "/api/version"];

let backend: RawBackend;
let gate: Sallyport;
/** The body of the backend's response. */
let responseBody = '{"build":"4.5.6"}';
beforeAll(async () => {
  backend = await startRawBackend(() => ({
    write: `HTTP/1.1 200 OK\r\nContent-Length: ${responseBody.length}\r\n\r\n${responseBody}`,
  }));
  gate = await startSallyport({ target: backend.url, env: { ORDERS_VERSION: "3.0.1" } });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/** Makes this the `version` section of the configuration in force. */
async function use(section?: object): Promise<void> {
  await editConfiguration(gate, (config) => {
    delete config["version"];
    if (section !== undefined) config["version"] = section;
  });
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
}

function version(path = "/api/v1/version") {
  return ask(gate, path, { token: gate.token });
}

describe("the version", () => {
  it("is served on both paths, for GET and HEAD, only with a token", async () => {
    await use({ text: "2.3.1" });
    backend.forget();
    for (const path of PATHS) {
      const answer = await version(path);
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({
        "content-type": "application/json",
        "content-length": String(answer.body.length),
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
      });
      expect(fieldsOf(answer)).toEqual({
        id: expect.toSatisfy(Number.isSafeInteger),
        message: "Version of the API",
        success: true,
        version: "2.3.1",
      });

      const lines = [`HEAD ${path} HTTP/1.1`, "Host: a", `Authorization: Bearer ${gate.token}`];
      const head = await exchange(gate, request(lines), { head: true });
      expect(head.last.status).toBe(200);
      expect(head.last.header("content-length")).toBe(answer.headers["content-length"]);
      expect(head.raw.endsWith("\r\n\r\n")).toBe(true);

      const refused = await ask(gate, path);
      expect(refused.status).toBe(401);
      expect(refused.headers["www-authenticate"]).toBe('Bearer realm="sallyport"');

      const posted = await ask(gate, path, { method: "POST", token: gate.token });
      expect(posted.status).toBe(405);
      expect(posted.headers["allow"]).toBe("GET, HEAD");
    }
    expect(backend.seen()).toEqual([]);
  });

  it("may come from the environment", async () => {
    await use({ env: "ORDERS_VERSION" });
    expect(fieldsOf(await version())["version"]).toBe("3.0.1");
  });

  it("is Sallyport's own by default", async () => {
    await use();
    expect(fieldsOf(await version())["version"]).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it("may come from a file that changes; 503 while the file holds no valid version", async () => {
    const file = join(gate.directory, "VERSION");
    await writeFile(file, "1.2.3\n");
    await use({ file: "VERSION" });
    expect(fieldsOf(await version())["version"]).toBe("1.2.3");
    await writeFile(file, "10.20.30");
    expect(fieldsOf(await version())["version"]).toBe("10.20.30");
    for (const broken of ["v1.2.3", "1.2", "01.2.3", "1.2.3-rc1", "", "1.2.3\n4.5.6"]) {
      await writeFile(file, broken);
      const answer = await version();
      expect(answer.status, broken).toBe(503);
      expect(answer.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
      expect(fieldsOf(answer)).toEqual({
        id: expect.any(Number),
        message: expect.any(String),
        success: false,
      });
    }
    await writeFile(file, "1.2.4");
    expect(fieldsOf(await version())["version"]).toBe("1.2.4");
  });

  it("may come from the backend; 503 until that returns a valid one", async () => {
    await use({ upstream: "app", path: "/about", field: "build" });
    for (const broken of ['{"build":"4.5"}', '{"build":4}', '{"other":"4.5.6"}', "no JSON", "[]"]) {
      responseBody = broken;
      const answer = await version();
      expect(answer.status, broken).toBe(503);
      expect(answer.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
    }
    responseBody = '{"build":"4.5.6"}';
    backend.forget();
    expect(fieldsOf(await version())["version"]).toBe("4.5.6");
    expect(fieldsOf(await version(PATHS[1]))["version"]).toBe("4.5.6");
    expect(backend.seen()).toEqual(["GET /about"]);
  });
});
