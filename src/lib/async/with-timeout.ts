/**
 * Waits for a promise up to a time limit.
 *
 * @param limitMs milliseconds.
 * @param late the result if `work` exceeds the time limit; the outcome of `work` is then ignored.
 */
export async function withTimeout<T, L>(
  work: Promise<T>,
  limitMs: number,
  late: L,
): Promise<T | L> {
  const timeout = Promise.withResolvers<L>();
  const timer = setTimeout(timeout.resolve, limitMs, late);
  try {
    return await Promise.race([work, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
