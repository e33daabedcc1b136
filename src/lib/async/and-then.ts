/**
 * Calls `proceed` with a value, at once if it is not a promise: that costs no promise and no turn of the event loop.
 * `context` replaces a closure, so that a request does not allocate one.
 */
export function andThen<Value, Context, Result>(
  value: Value | Promise<Value>,
  proceed: (context: Context, value: Value) => Result | Promise<Result>,
  context: Context,
): Result | Promise<Result> {
  return value instanceof Promise
    ? value.then((later) => proceed(context, later))
    : proceed(context, value);
}
