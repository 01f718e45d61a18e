import Primitives

/// Decides which records are written to the journal. Repeated records above a rate are only counted, and their counts
/// are written periodically.
///
/// There are two rate limits:
///
/// - A **subject** is an event about one node, link or text. `subjectBurst` records of a subject are written within a
///   minute. Further records are counted. The counting period doubles from one minute to 16 minutes.
/// - A **kind** is all records of one event, or of one source of texts, regardless of the subject. The limit of a kind
///   is a burst of 1/32 of the ring, but at least `kindBurstMin` records, which refills within an hour.
///
/// So others can flood eight kinds for an hour with any number of invented subjects, and half of the ring still
/// contains older records.
///
/// The burst of a kind has two parts, which are shared by the causes of the records (`RecordCause`):
///
/// - Three quarters are for everybody. With n greedy interfaces or users, each of them gets 1/(n + 1) of this part. The
///   box itself may take all that is free.
/// - A quarter is the reserve, for records about nodes on which the operator has decided, and for those of the box. A
///   record uses the reserve when the first part does not admit it. With n greedy nodes, each of them gets 1/(n + 1) of
///   the reserve. Strangers cannot use the reserve, so a record about such a node is written whatever they do.
///
/// Faults and debug records have no limit. A person who enables debug records wants all of them.
public struct RepeatFilter {
  /// The number of records of one subject that are written before further records are counted.
  static let subjectBurst: UInt8 = 8
  /// The number of subjects that are tracked at the same time. The table consists of sets of `setCount` entries, and
  /// the hash of a subject selects one set. If that set is full, only the limit of the kind applies to the subject.
  static let subjectsMax = 64
  static let setCount = 4
  /// The shortest counting period, and the longest: the period doubles while records of the subject continue.
  static let span = TimeSpan.seconds(60)
  static let spanMax = TimeSpan.seconds(960)
  /// The smallest burst of a kind, in records. In a small ring one interface can then write the burst of a subject.
  static let kindBurstMin = 32
  /// The number of kinds. There is a kind for each event, and `sourcesMax` kinds for the sources of texts
  /// (`Event.report`).
  static let kindsMax = 240
  static let sourcesMax = 16
  private static let hourNanoseconds: UInt64 = 3_600_000_000_000

  /// The subject of a record. The subject identifies equal subjects, and contains the fields for the record with the
  /// count (`Event.repeated`).
  struct Subject {
    var event: Event
    var level = Level.debug
    var link: UInt8 = 0xFF
    var first: UInt64 = 0
    var second: UInt64 = 0
    /// A hash that is equal for records of the same subject. Never 0.
    var key: UInt64
    var kind: Int
  }

  private struct Watch {
    /// The hash of the subject; 0 if this entry is free.
    var key: UInt64 = 0
    var since = Instant.zero
    var until = Instant.zero
    var doublings: UInt8 = 0
    var written: UInt8 = 0
    var repeats: UInt64 = 0
    var subject = Subject(event: .report, key: 1, kind: 0)
  }

  /// A part of the burst of a kind.
  private struct Pool {
    private var share: FairShare
    private var refilledAt = Instant.zero

    init(capacity: Int) { share = FairShare(capacity: capacity) }

    /// Refills the pool, in equal parts for all holders that have used it.
    mutating func refill(_ now: Instant) {
      let step = RepeatFilter.hourNanoseconds / UInt64(share.capacity)
      let due = min((now - refilledAt).nanoseconds / step, UInt64(share.capacity - share.free))
      share.reclaim(Int(due))
      refilledAt = share.free == share.capacity ? now : refilledAt + TimeSpan(nanoseconds: due * step)
    }

    /// Charges records to a holder. Returns false, and charges nothing, if the holder's share is not sufficient. If
    /// `isBox`, the holder may take all that is free.
    mutating func spend(_ records: Int, by holder: Int, isBox: Bool = false) -> Bool {
      guard isBox ? records <= share.free : share.mayTake(records, by: holder) else { return false }
      share.take(records, by: holder)
      return true
    }
  }

  private struct Kind {
    var all: Pool
    var reserve: Pool
    var since = Instant.zero
    var repeats: UInt64 = 0
    var subject = Subject(event: .report, key: 1, kind: 0)
  }

  /// The level of the journal: records that are less severe are dropped.
  var level: Level
  private var watches = FixedArray<64, Watch>(repeating: Watch())
  private var kinds: FixedArray<240, Kind>
  /// The cause of the records with a link byte: who can send over the link, and the neighbour if the operator has
  /// decided on it. Nil for a link that was never attributed.
  private var links = FixedArray<64, RecordCause?>(repeating: nil)

  /// `capacity` is the number of records in the ring.
  public init(level: Level, capacity: Int) {
    self.level = level
    let burst = min(max(Self.kindBurstMin, capacity / 32), Int(UInt16.max))
    let reserve = max(burst / 4, Journal.textRecordsMax)
    kinds = FixedArray(repeating: Kind(all: Pool(capacity: burst - reserve), reserve: Pool(capacity: reserve)))
  }

  /// Sets the cause of all further records with this link byte.
  mutating func attribute(link: UInt8, to cause: RecordCause) {
    if link < UInt8(Limits.linksMax) { links[Int(link)] = cause }
  }

  /// The cause of a record with this link byte. Links that were not attributed are a holder each.
  ///
  /// The method changes nothing, and is `mutating` because Swift 6.3.1 copies a borrowed filter completely to read one
  /// element.
  mutating func cause(ofLink link: UInt8) -> RecordCause {
    link < UInt8(Limits.linksMax) ? links[Int(link)] ?? .interface(UInt32(link)) : .box
  }

  static func counts(_ level: Level) -> Bool {
    switch level {
    case .fault, .debug: false
    case .error, .warning, .notice, .info: true
    }
  }

  /// Returns whether a message about a subject is written. If not, the message is counted. `records` is the number of
  /// records that the message needs.
  mutating func admits(_ subject: Subject, records: Int, by cause: RecordCause, at now: Instant) -> Bool {
    var free: Int?
    let set = Int(subject.key >> 32) & (Self.subjectsMax - 1) & ~(Self.setCount - 1)
    var index = set
    while index < set + Self.setCount {
      if watches[index].key == subject.key { return admitsAgain(subject, index, records, cause, now) }
      if free == nil && watches[index].repeats == 0 && watches[index].until <= now { free = index }
      index += 1
    }
    guard spend(subject, records, cause, now) else { return false }
    if let free {
      watches[free] = Watch(
        key: subject.key, since: now, until: now + Self.span, doublings: 0, written: 1, repeats: 0, subject: subject)
    }
    return true
  }

  private mutating func admitsAgain(
    _ subject: Subject, _ index: Int, _ records: Int, _ cause: RecordCause, _ now: Instant
  ) -> Bool {
    let isCounting = watches[index].repeats > 0
    if !isCounting && watches[index].until <= now {
      watches[index].since = now
      watches[index].until = now + Self.span
      watches[index].doublings = 0
      watches[index].written = 0
    }
    if watches[index].written < Self.subjectBurst && spend(subject, records, cause, now) {
      watches[index].written += 1
      return true
    }
    if watches[index].written >= Self.subjectBurst { watches[index].repeats &+= 1 }
    return false
  }

  /// Charges records to the share that the cause has of the subject's kind. Returns false if the share is not
  /// sufficient, and then counts the message for the kind.
  private mutating func spend(_ subject: Subject, _ records: Int, _ cause: RecordCause, _ now: Instant) -> Bool {
    let kind = subject.kind
    kinds[kind].all.refill(now)
    kinds[kind].reserve.refill(now)
    if kinds[kind].all.spend(records, by: cause.holder, isBox: cause.holder == FairShare.ownHolder) { return true }
    if let holder = cause.reserveHolder, kinds[kind].reserve.spend(records, by: holder) { return true }
    if kinds[kind].repeats == 0 { kinds[kind].since = now }
    kinds[kind].repeats &+= 1
    kinds[kind].subject = subject
    return false
  }

  /// Returns the next count of repeats whose period has ended, and sets this count to 0. Returns nil if there is no
  /// count whose period has ended. If `isLast` is true, all counts are returned, regardless of their periods.
  mutating func nextCount(at now: Instant, isLast: Bool) -> (subject: Subject, repeats: UInt64, seconds: UInt64)? {
    for index in 0..<Self.subjectsMax where watches[index].repeats > 0 {
      guard isLast || watches[index].until <= now else { continue }
      let watch = watches[index]
      watches[index].doublings = min(watch.doublings, .max - 1) + 1
      watches[index].since = now
      let span = Backoff.pause(after: Int(watches[index].doublings), first: Self.span, longest: Self.spanMax)
      watches[index].until = now + span
      watches[index].repeats = 0
      // In the next period one record is written again, so that the journal shows the present state.
      watches[index].written = Self.subjectBurst - 1
      return (watch.subject, watch.repeats, (now - watch.since).milliseconds / 1000)
    }
    let longest = Self.spanMax.nanoseconds
    for index in 0..<Self.kindsMax where kinds[index].repeats > 0 {
      let span = (now - kinds[index].since).nanoseconds
      guard isLast || span >= longest else { continue }
      let repeats = kinds[index].repeats
      kinds[index].repeats = 0
      var subject = kinds[index].subject
      // The counted records had many subjects, of which only the last is known, so its fields are removed. Texts of one
      // kind have the same source, so the beginning of the text is kept.
      subject.link = 0xFF
      if subject.event != .report { (subject.first, subject.second) = (0, 0) }
      return (subject, repeats, span / 1_000_000_000)
    }
    return nil
  }
}

extension RepeatFilter.Subject {
  /// The subject of a record with integers and 16 bytes. Values of `a` below 255 distinguish subjects, because they are
  /// reasons or bearers. Larger values are quantities, and do not distinguish subjects.
  init(_ event: Event, _ level: Level, _ link: UInt8, a: UInt64, _ first: UInt64, _ second: UInt64) {
    var hash = mixed(UInt64(event.rawValue) << 16 | UInt64(link) << 8 | (a < 256 ? a : 255))
    hash = mixed(hash ^ first)
    hash = mixed(hash ^ second)
    let kind = min(Int(event.rawValue), RepeatFilter.kindsMax - RepeatFilter.sourcesMax - 1)
    self.init(event: event, level: level, link: link, first: first, second: second, key: hash | 1, kind: kind)
  }

  /// The subject of a text, “source: text”. Digits directly after a colon are ignored, because they may be a port,
  /// which differs each time.
  init(_ event: Event, _ level: Level, words: UnsafeRawBufferPointer, _ first: UInt64, _ second: UInt64) {
    var hash: UInt64 = 0
    var source: UInt64?
    var isPort = false
    for byte in words {
      let isDigit = (0x30...0x39).contains(byte)
      isPort = byte == UInt8(ascii: ":") || isPort && isDigit
      if isPort && isDigit { continue }
      if byte == UInt8(ascii: ":") && source == nil { source = hash }
      hash = mixed(hash ^ UInt64(byte))
    }
    let number = Int((source ?? hash) % UInt64(RepeatFilter.sourcesMax))
    self.init(
      event: event, level: level, first: first, second: second, key: hash | 1,
      kind: RepeatFilter.kindsMax - RepeatFilter.sourcesMax + number)
  }
}

/// The finaliser of SplitMix64, a hash in which every bit of the result depends on every bit of the input.
func mixed(_ value: UInt64) -> UInt64 {
  var z = value &+ 0x9E37_79B9_7F4A_7C15
  z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
  z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
  return z ^ z >> 31
}
