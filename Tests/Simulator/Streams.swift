import Frame
import Glibc
import Link
import Node
import Primitives
import TestSupport

/// Streams over wires: dials and handshakes, bytes in flight, and how streams end.
extension Simulation {
  func side(of stream: Int, _ machine: Int, _ slot: Int) -> Int {
    streams[stream].ends.0.machine == machine && streams[stream].ends.0.slot == slot ? 0 : 1
  }

  /// The time for which a dial waits while the other machine has no free Bluetooth slot and therefore does not
  /// advertise.
  static let slotWait = TimeSpan.seconds(8)

  func dialEnds(_ machine: Int, _ life: Int, _ wire: Int, until end: Instant? = nil) {
    guard machines[machine].life == life, machines[machine].node != nil else { return }
    let other = wires[wire].other(machine)
    guard wires[wire].isUp, machines[other].node != nil else { return tell(machine, .dialFailed(UInt32(wire))) }
    if wires[wire].model.bearer == .bluetoothLE, !hasSlot(machine) || !hasSlot(other) {
      let end = end ?? now + Self.slotWait
      if !hasSlot(machine) || now >= end { return tell(machine, .dialFailed(UInt32(wire))) }
      return plan(.dialEnds(machine: machine, life: life, wire: wire, until: end), after: .milliseconds(50))
    }
    let ends = (
      Stream.End(machine: machine, life: life), Stream.End(machine: other, life: machines[other].life)
    )
    open.append(streams.count)
    streams.append(Stream(wire: wire, ends: ends, diallingSide: wires[wire].side(machine)))
    // `open` may keep streams that both ends have closed, so these are removed from time to time.
    if open.count > 256 { open.removeAll { streams[$0].ends.0.isGone && streams[$0].ends.1.isGone } }
    // The end of a handshake reaches each node at a different time, in either order.
    for side in 0...1 {
      plan(.opens(stream: streams.count - 1, side: side), after: span(.milliseconds(0), wires[wire].model.delay.most))
    }
  }

  /// Whether a machine's radio accepts another Bluetooth connection. A connection occupies a slot while at least one of
  /// its ends considers it open.
  private func hasSlot(_ machine: Int) -> Bool {
    let taken = open.count { stream in
      wires[streams[stream].wire].model.bearer == .bluetoothLE && !isOver(stream)
        && (streams[stream].ends.0.machine == machine || streams[stream].ends.1.machine == machine)
    }
    slotsTaken = max(slotsTaken, taken)
    return taken < machines[machine].bluetoothSlots
  }

  private func isOver(_ stream: Int) -> Bool {
    [0, 1].allSatisfy {
      let end = streams[stream][end: $0]
      return end.isGone || machines[end.machine].life != end.life || machines[end.machine].node == nil
    }
  }

  func opens(_ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    let wire = streams[stream].wire
    guard machines[end.machine].life == end.life, let node = machines[end.machine].node, !end.isGone else { return }
    let peer = machines[wires[wire].other(end.machine)].key.id
    let handle = side == 0 ? UInt32(wire) : nil
    guard let slot = node.openLink(peer: peer, bearer: wires[wire].model.bearer, dialled: handle, now: now) else {
      streams[stream][end: side].isGone = true
      plan(.streamEnds(stream: stream, side: 1 - side), after: wires[wire].model.delay.most)
      return
    }
    trace.add(now, .open, end.machine, slot, wire)
    streams[stream][end: side].slot = slot
    machines[end.machine].streams[slot] = stream
    events.plan(.arrival(stream: stream, from: 1 - side), at: now)
    touched(end.machine)
  }

  /// Moves frames from a link into its stream while the wire's buffer has space. If `all`, moves all frames.
  func send(_ stream: Int, _ side: Int, all: Bool) {
    let end = streams[stream][end: side]
    guard let slot = end.slot, let node = machines[end.machine].node else { return }
    let most = wires[streams[stream].wire].model.bytesBelowMax
    streams[stream][from: side].depart(now)
    while all || streams[stream][from: side].bytesBelow < most {
      let room = FrameHeader.byteCount + node.link(slot).payloadBytesMax
      var count = scratch.withUnsafeMutableBytes { scratch in
        node.pop(slot, into: UnsafeMutableRawBufferPointer(rebasing: scratch[..<room]))
      }
      if count == 0, node.link(slot).hasFrames {
        count = scratch.withUnsafeMutableBytes { node.pop(slot, into: $0) }
      }
      if count == 0 {
        streams[stream][from: side].isFull = false
        return
      }
      let bytes = Array(scratch[..<count])
      streams[stream][end: side].bytesOut += UInt64(count)
      observe(bytes, stream, side)
      put(mischief(bytes, end.machine), stream, side)
    }
    if streams[stream][from: side].isFull { return }
    streams[stream][from: side].isFull = true
    if let departure = streams[stream][from: side].nextDeparture {
      events.plan(.room(stream: stream, side: side), at: max(departure, now))
    }
  }

  /// Continues to send frames of a link whose stream was full, because bytes have left the wire's buffer.
  func room(_ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    guard streams[stream][from: side].isFull, !streams[stream][from: side].isDead, !end.isGone,
      machines[end.machine].life == end.life
    else { return }
    streams[stream][from: side].isFull = false
    send(stream, side, all: false)
    touched(end.machine)
  }

  /// Sends bytes over a stream that no node has produced.
  func inject(_ bytes: [UInt8], _ stream: Int, _ side: Int) { if !bytes.isEmpty { put(bytes, stream, side) } }

  /// Sends bytes over a stream, which arrive in order, but in pieces of random sizes.
  private func put(_ bytes: [UInt8], _ stream: Int, _ side: Int) {
    let receiver = streams[stream][end: 1 - side]
    for frame in frames(in: bytes) {
      observer.heard(frame.header, by: receiver.machine, life: receiver.life)
    }
    var rest = hellosCut(bytes, wires[streams[stream].wire].model.framePayloadBytesMax)[...]
    while !rest.isEmpty {
      let count = random.chance(perThousand: 300) ? Int(random.below(UInt64(rest.count))) + 1 : rest.count
      var piece = travel(Array(rest.prefix(count)), stream, side)
      repair(&piece, stream, side)
      streams[stream][from: side].append(piece)
      if !streams[stream][from: side].isDead { events.plan(.arrival(stream: stream, from: side), at: piece.arrivesAt) }
      rest = rest.dropFirst(count)
    }
  }

  /// The piece for bytes that are sent now, with the times of their departure and arrival.
  private func travel(_ bytes: [UInt8], _ stream: Int, _ side: Int) -> Stream.Piece {
    let wire = streams[stream].wire
    let end = streams[stream].wireSide(side)
    let model = wires[wire].model
    let start = max(now, wires[wire][from: end].busyUntil, wires[wire][from: end].stalledUntil)
    var busy = model.time(for: bytes.count, from: end)
    var delay = span(model.delay.least, model.delay.most) + (start - now) * model.loadDelayFactor
    var isCorrupt = false
    if now < wires[wire][from: end].weather.until {
      let lost = losses((bytes.count + model.packetBytes - 1) / model.packetBytes, &wires[wire][from: end].weather)
      let weather = wires[wire][from: end].weather
      busy = TimeSpan(nanoseconds: busy.nanoseconds * weather.slowness)
      busy.nanoseconds += model.time(for: model.packetBytes, from: end).nanoseconds * UInt64(lost.packets)
      delay.nanoseconds += weather.extraDelay.nanoseconds + model.repairDelay.nanoseconds * UInt64(lost.rounds)
      isCorrupt = random.chance(perThousand: weather.corruptPerThousand)
    }
    wires[wire][from: end].busyUntil = start + busy
    let arrives = max(streams[stream][from: side].lastArrival, start + busy + delay)
    return Stream.Piece(leavesAt: start + busy, arrivesAt: arrives, bytes: bytes, isCorrupt: isCorrupt)
  }

  /// The number of packets lost by the weather of a wire, out of `packets`, and the maximum number of retransmissions
  /// of one packet.
  private func losses(_ packets: Int, _ weather: inout Weather) -> (packets: Int, rounds: Int) {
    if weather.isBursty, now >= weather.burstTurnsAt {
      weather.isInBurst.toggle()
      weather.burstTurnsAt = now + .milliseconds(5 + random.below(weather.isInBurst ? 100 : 1000))
    }
    let rate = weather.isBursty ? (weather.isInBurst ? 500 : 0) : weather.lossPerThousand
    if rate == 0 { return (0, 0) }
    var (sum, rounds) = (0, 0)
    for _ in 0..<packets {
      var tries = 0
      while tries < 10, random.chance(perThousand: rate) { tries += 1 }
      sum += tries
      rounds = max(rounds, tries)
    }
    return (sum, rounds)
  }

  /// Delays a piece by the losses that its wire model always has. Lost packets are retransmitted, and the last one
  /// delays all data behind it.
  private func repair(_ piece: inout Stream.Piece, _ stream: Int, _ side: Int) {
    let wire = streams[stream].wire
    let end = streams[stream].wireSide(side)
    let model = wires[wire].model
    guard model.lossPerThousand > 0 else { return }
    var (lost, rounds) = (0, 0)
    for _ in 0..<(piece.bytes.count + model.packetBytes - 1) / model.packetBytes {
      var tries = 0
      while tries < 10, random.chance(perThousand: model.lossPerThousand) { tries += 1 }
      lost += tries
      rounds = max(rounds, tries)
    }
    guard lost > 0 else { return }
    piece.leavesAt = piece.leavesAt + model.time(for: lost * model.packetBytes, from: end)
    wires[wire][from: end].busyUntil = piece.leavesAt
    let repaired = piece.leavesAt + model.delay.most + model.repairDelay * UInt64(rounds)
    piece.arrivesAt = max(piece.arrivesAt, repaired)
  }

  /// Reduces the frame length that a hello offers to `most`, for a wire whose ends accept shorter frames than its
  /// bearer.
  private func hellosCut(_ bytes: [UInt8], _ most: Int) -> [UInt8] {
    guard most < Limits.framePayloadBytesMax, let (header, payload) = frames(in: bytes).first,
      header.knownType == .hello, var hello = try? Hello(payload.span.bytes)
    else { return bytes }
    hello.payloadBytesMax = min(hello.payloadBytesMax, UInt16(most))
    let cut = encoded { output in
      header.write(to: &output)
      hello.write(to: &output)
    }
    return cut + bytes.dropFirst(cut.count)
  }

  private func observe(_ bytes: [UInt8], _ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    let frames = frames(in: bytes)
    if frames.reduce(0, { $0 + $1.header.frameByteCount }) != bytes.count {
      fail("machine \(end.machine) sends bytes that are not complete frames")
    }
    for frame in frames {
      trace.add(now, .frame, end.machine, Int(frame.header.type), Int(truncatingIfNeeded: frame.header.identifier))
      let wrong = observer.sent(
        frame.header, frame.payload.span.bytes, by: end.machine, life: end.life,
        id: machines[end.machine].key.id, stream: stream, to: machines[streams[stream][end: 1 - side].machine].key.id,
        now: now)
      if let wrong { fail("machine \(end.machine) \(wrong)") }
      checkSecrecy(frame.header, frame.payload, end.machine)
    }
  }

  /// Checks that a payload is encrypted if one of its end nodes requires encryption or both support it. The check uses
  /// the frame type and searches for the canary.
  private func checkSecrecy(_ header: FrameHeader, _ payload: [UInt8], _ machine: Int) {
    guard header.isRouted else { return }
    let ends = (number(of: header.source), number(of: header.destination))
    let isOwn = header.source == machines[machine].key.id
    if ends.0 < 0 || ends.1 < 0 { return isOwn ? fail("machine \(machine) sends a frame with an unknown id") : () }
    let isOpen = mayBeClear(ends.0, ends.1)
    if isOwn, !isOpen, header.knownType != .sealed, header.knownType != .handshake {
      fail("machine \(machine) sends an unencrypted frame to \(ends.1)")
    }
    guard Self.contains(payload, MessageLedger.canary) else { return }
    canaryCount += 1
    // A relay with the fault `alter` changes ids in frames, so a payload may seem to belong to two other nodes.
    if isOpen || !isOwn && options.faults.contains(.alter) { return }
    fail("the canary of \(ends.0) to \(ends.1) is unencrypted on a wire of machine \(machine)")
  }

  private static func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { bytes in
      part.withUnsafeBytes { part in
        var offset = 0
        while offset + part.count <= bytes.count,
          let found = memchr(bytes.baseAddress! + offset, Int32(part[0]), bytes.count - offset)
        {
          offset = UnsafeRawPointer(found) - bytes.baseAddress!
          if offset + part.count <= bytes.count, memcmp(found, part.baseAddress!, part.count) == 0 { return true }
          offset += 1
        }
        return false
      }
    }
  }

  func arrival(_ stream: Int, from side: Int) {
    let wire = wires[streams[stream].wire]
    let end = streams[stream][end: 1 - side]
    if streams[stream][from: side].isDead || end.isGone { return }
    guard machines[end.machine].life == end.life, let node = machines[end.machine].node, let slot = end.slot else {
      return
    }
    let stalledUntil = wire[from: streams[stream].wireSide(side)].stalledUntil
    if stalledUntil > now { return events.plan(.arrival(stream: stream, from: side), at: stalledUntil) }
    streams[stream][from: side].depart(now)
    while let first = streams[stream][from: side].first, first.arrivesAt <= now {
      streams[stream][from: side].removeFirst()
      if first.isCorrupt {
        trace.add(now, .corrupt, end.machine, slot)
        return breaks(stream, seenBy: 1 - side)
      }
      trace.add(now, .bytes, end.machine, slot, first.bytes.count)
      if node.link(slot).isReceiving || node.link(slot).state == .opening {
        streams[stream][end: 1 - side].bytesIn += UInt64(first.bytes.count)
      }
      first.bytes.withUnsafeBytes { node.receive($0, on: slot, now: now) }
      touched(end.machine)
      if !claim.keys.isEmpty, claim.machines.first == end.machine { answerVictims(first.bytes, stream, 1 - side) }
      checkBytes(stream, 1 - side)
      if streams[stream][end: 1 - side].isGone { break }
    }
    if streams[stream][from: side].hasEnded, streams[stream][from: side].isEmpty { streamEnds(stream, 1 - side) }
  }

  /// Ends a stream because TLS at the end `side` found an error. The other end of the stream is notified after the
  /// wire's delay.
  private func breaks(_ stream: Int, seenBy side: Int) {
    streams[stream].isDead = true
    plan(.streamEnds(stream: stream, side: 1 - side), after: wires[streams[stream].wire].model.delay.most)
    streamEnds(stream, side)
  }

  /// Marks the stream as ended at the end `side`, and notifies the node there.
  func streamEnds(_ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    guard !end.isGone, machines[end.machine].life == end.life else { return }
    streams[stream][end: side].isGone = true
    if streams[stream][end: 1 - side].isGone { open.removeAll { $0 == stream } }
    guard let slot = end.slot else { return }
    machines[end.machine].streams[slot] = nil
    trace.add(now, .gone, end.machine, slot)
    tell(end.machine, .linkClosed(slot))
  }
}
