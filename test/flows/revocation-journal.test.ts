import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

it("reports a journal that cannot be written, and writes the missing entries once it can", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: { tokens: { revocation: { journal: "revoked.journal" } } },
  });
  const revoke = async (jti: string): Promise<number> => {
    const answer = await ask({ port: gate.adminPort }, `/-/revoke?jti=${jti}`, { method: "POST" });
    expect(fieldsOf(answer)["success"]).toBe(true);
    return answer.status;
  };
  const writable = async (): Promise<number | undefined> =>
    (await scrape(gate)).value("sallyport_revocation_journal_writable");
  const journal = join(gate.directory, "revoked.journal");
  expect(await revoke("one")).toBe(200);
  expect(await writable()).toBe(1);
  // A directory in its place blocks root, too.
  await rm(journal);
  await mkdir(journal);
  await writeFile(join(journal, "in-the-way"), "");
  expect(await revoke("two")).toBe(200);
  expect(await writable()).toBe(0);
  await until(() =>
    JSON.stringify(gate.log()).includes(
      "revocations cannot be written: they are lost at a restart",
    ),
  );
  await rm(journal, { recursive: true });
  expect(await revoke("three")).toBe(200);
  expect(await writable()).toBe(1);
  const text = await readFile(journal, "utf8");
  for (const jti of ["one", "two", "three"]) expect(text).toContain(jti);
});
