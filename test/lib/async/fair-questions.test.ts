import { expect, it } from "vitest";
import { FairQuestions } from "../../../src/lib/async/fair-questions.ts";

it("a newcomer takes the place of the client that has most, and nobody takes that of one with few", async () => {
  const questions = new FairQuestions({ atOnce: 2, most: 12, mostOfClient: 5 });
  const signal = AbortSignal.timeout(10_000);
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  const ends = new Map<string, string[]>();
  const ask = (client: string): Promise<void> =>
    questions
      .ask(client, signal, () => over)
      .then(
        () => "answered",
        () => "refused",
      )
      .then((end) => void ends.set(client, [...(ends.get(client) ?? []), end]));
  // Three clients fill everything.
  const all = ["a", "b", "c"].flatMap((client) => Array.from({ length: 4 }, () => ask(client)));
  const late = [ask("victim"), ask("victim")];
  await Promise.resolve();
  // One with as many as everybody else gets no place of theirs.
  const greedy = ask("a");
  finish();
  await Promise.all([...all, ...late, greedy]);
  expect(ends.get("victim")).toEqual(["answered", "answered"]);
  const refused = ["a", "b", "c"].flatMap((client) => ends.get(client) ?? []);
  expect(refused.filter((end) => end === "refused")).toHaveLength(3);
});

it("asks no more at once than it may, if what ends while it waits has to make room as well", async () => {
  const questions = new FairQuestions({ atOnce: 1, most: 4, mostOfClient: 3 });
  const never = new AbortController().signal;
  const ending = new AbortController();
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  let running = 0;
  const ask = (client: string, signal: AbortSignal): Promise<unknown> =>
    questions.ask(client, signal, () => ((running += 1), over)).catch((error: unknown) => error);
  const first = [ask("a", never), ask("a", never)];
  const ended = ask("a", ending.signal);
  const others = [ask("b", never)];
  await Promise.resolve();
  ending.abort(new Error("too late"));
  others.push(ask("c", never));
  expect(await ended).toMatchObject({ message: expect.stringContaining("too late") });
  expect(running).toBe(1);
  finish();
  await Promise.all([...first, ...others]);
  expect(running).toBe(4);
});
