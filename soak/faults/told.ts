import { until } from "../../test/support/until.ts";
import type { LogBook } from "../accounts/log-book.ts";

/** Longer than the five seconds after which a change is found even where the system tells of none. */
const FOUND_MS = 15_000;

/** Does something, and waits for the line of the log that tells that it was noticed. */
export async function told(
  book: LogBook,
  message: string,
  act: () => Promise<void>,
): Promise<void> {
  const before = book.messages.of(message);
  await act();
  await until(() => book.messages.of(message) > before, FOUND_MS);
}
