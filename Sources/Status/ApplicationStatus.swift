import JSON
import Primitives
import Text

/// The status of an application that is connected to the daemon. It shows no private content: no messages, no contexts
/// of invitations and no info of services.
public struct ApplicationStatus {
  /// The name that the application sent in its hello; empty before the hello.
  public var name: String
  public var user: UInt64
  public var process: UInt64
  /// The types of the services that the application offers.
  public var services: [String]
  public var sessions: [SessionStatus]

  public init(name: String, user: UInt64, process: UInt64, services: [String], sessions: [SessionStatus]) {
    self.name = name
    self.user = user
    self.process = process
    self.services = services
    self.sessions = sessions
  }
}

/// One session of an application.
public struct SessionStatus {
  /// The session id as 32 hexadecimal digits. The id changes when sessions merge.
  public var id: String
  public var type: String
  /// The other members of the session: the node, its name and the member's state.
  public var members: [(id: NodeID, name: String, state: String)]
  public var streams: UInt64
  /// The bytes of messages and streams that the application has not read.
  public var bytesWaiting: UInt64

  public init(
    id: String, type: String, members: [(id: NodeID, name: String, state: String)], streams: UInt64,
    bytesWaiting: UInt64
  ) {
    self.id = id
    self.type = type
    self.members = members
    self.streams = streams
    self.bytesWaiting = bytesWaiting
  }
}

extension [ApplicationStatus] {
  /// The JSON text (RFC 8259) of `causeway sessions --json`. Keys are stable: later versions add keys, but remove none.
  public func toJSON() -> [UInt8] {
    let root = JSONObject()
    root.set(
      "applications",
      JSONArray(self) { application, object in
        object.set("name", application.name)
        object.set("user", application.user)
        object.set("process", application.process)
        let services = JSONArray()
        for service in application.services { services.append(service) }
        object.set("services", services)
        object.set(
          "sessions",
          JSONArray(application.sessions) { session, object in
            object.set("id", session.id)
            object.set("type", session.type)
            object.set(
              "members",
              JSONArray(session.members) { member, object in
                object.set("id", member.id.text)
                object.set("name", member.name)
                object.set("state", member.state)
              })
            object.set("streams", session.streams)
            object.set("bytes_waiting", session.bytesWaiting)
          })
      })
    return root.text()
  }
}

/// The output of `causeway sessions`, made from the daemon's JSON: two tables of at most 80 columns.
public struct SessionsReport {
  private let root: JSONView
  /// The maximum width of an application's name, in columns. Longer names are truncated.
  private static let nameColumns = 12

  /// Parses the daemon's answer. Throws if it is not a JSON object.
  public init(_ json: [UInt8]) throws(AccessError) {
    guard let root = JSONView(parsing: json) else { throw .notUnderstood }
    self.root = root
  }

  /// Frees jansson's memory; the report must not be used afterwards.
  public func release() { root.release() }

  /// Returns the two tables. `hasNames` is false for a report that leaves the box: the name of an application can
  /// identify a person.
  public func text(hasNames: Bool = true) -> TextBuilder {
    var text = TextBuilder()
    var applications = TextTable(["APPLICATION", "USER", "PROCESS", "SESSIONS", "SERVICES"])
    var sessions = TextTable(["SESSION", "TYPE", "APPLICATION", "MEMBERS", "AWAY", "PAUSED", "STREAMS", "WAITING"])
    root["applications"].forEach { application in
      let name = hasNames ? cut(application["name"].string) : ""
      var services = "", sessionCount = 0
      application["services"].forEach { services += services.utf8.isEmpty ? $0.string : ", \($0.string)" }
      application["sessions"].forEach { session in
        sessionCount += 1
        addRow(of: session, name, to: &sessions)
      }
      applications.add([
        name.utf8.isEmpty ? "–" : name, "\(application["user"].number)", "\(application["process"].number)",
        "\(sessionCount)", cut(services, to: 30),
      ])
    }
    if applications.isEmpty {
      text.add("no applications\n")
      return text
    }
    applications.write(to: &text)
    text.add("\n")
    if sessions.isEmpty { text.add("no sessions\n") } else { sessions.write(to: &text) }
    return text
  }

  private func addRow(of session: JSONView, _ application: String, to table: inout TextTable) {
    var count = 0, away = 0, paused = 0
    session["members"].forEach { member in
      let state = member["state"].string
      if state.utf8.elementsEqual("away".utf8) { away += 1 }
      if state.utf8.elementsEqual("paused".utf8) { paused += 1 }
      if state.utf8.elementsEqual("connected".utf8) || state.utf8.elementsEqual("paused".utf8) { count += 1 }
    }
    table.add([
      String(decoding: session["id"].string.utf8.prefix(8), as: UTF8.self), session["type"].string, application,
      "\(count)", "\(away)", "\(paused)", "\(session["streams"].number)", bytesText(session["bytes_waiting"].number),
    ])
  }

  private func cut(_ text: String, to columns: Int = nameColumns) -> String {
    var end = 0
    var kept: [UInt8] = []
    for byte in text.utf8 {
      if byte & 0xC0 != 0x80 { end += 1 }
      if end == columns && kept.count < text.utf8.count - 1 && byte & 0xC0 != 0x80 {
        return String(decoding: kept, as: UTF8.self) + "…"
      }
      kept.append(byte)
    }
    return text
  }
}
