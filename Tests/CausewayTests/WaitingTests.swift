import Testing

@testable import Causeway

@Test func `a promise is fulfilled once for all waiting tasks`() async {
  let promise = Promise<Int>()
  async let a = promise.value(), b = promise.value()
  promise.fulfil(1)
  promise.fulfil(2)
  #expect(await a == 1)
  #expect(await b == 1)
  #expect(await promise.value() == 1)
}

@Test func `a cancelled task stops waiting for a promise`() async {
  let promise = Promise<Int>()
  let task = Task { await promise.value() }
  task.cancel()
  #expect(await task.value == nil)
}

@Test func `a gate admits tasks in the order of their requests`() async {
  let gate = Gate(4)
  #expect(await gate.enter(3))
  let big = Task { await gate.enter(9) }
  while !gate.isWaiting { await Task.yield() }
  let small = Task { await gate.enter(1) }
  gate.leave(3)
  #expect(await big.value)
  gate.leave(9)
  #expect(await small.value)
  gate.leave(1)
  #expect(await gate.enter(4))
}

@Test func `a task that is cancelled at a gate lets the next one in`() async {
  let gate = Gate(2)
  #expect(await gate.enter(1))
  let big = Task { await gate.enter(2) }
  while !gate.isWaiting { await Task.yield() }
  let small = Task { await gate.enter(1) }
  big.cancel()
  #expect(await !big.value)
  #expect(await small.value)
}

@Test func `a queue releases removed elements and keeps its positions`() {
  var queue = Queue<Int>()
  for round in 0..<1000 {
    queue.append(2 * round)
    queue.append(2 * round + 1)
    #expect(queue.removeFirst() == round)
    #expect(queue[round] == nil)
    #expect(queue[2 * round + 1] == 2 * round + 1)
  }
  queue[1500] = -1
  #expect(queue[1500] == -1 && queue.count == 1000)
}
