//! A RAP runtime made of the real rap-client, as infinity is: no token, callbacks at 127.0.0.1 and a port that the
//! system chose. It calls sandbox-local through a gateway of assent. Usage: rap-probe GATEWAY DIRECTORY.

use rap_client::callback_server::start_callback_channel;
use rap_client::http::{HttpClient, InMemoryToolsetCache, SimpleHttpClient};
use rap_client::notifier::RapNotifier;
use rap_client::toolset_loader::ToolsetLoader;
use rap_protocol::{RapCallback, RapInvocation, RapToolResult, RapUserChoice, ThreadId, ToolCallId};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::sync::mpsc::UnboundedReceiver;

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Runtime {
    http: SimpleHttpClient,
    endpoint: String,
    callback_url: String,
    callbacks: UnboundedReceiver<RapCallback>,
}

impl Runtime {
    /// Invokes an operation in the last of the threads, which are given from the root on.
    async fn invoke(&self, threads: &[&str], id: &str, operation: &str, arguments: Value) -> Result<(), Failure> {
        let (thread, ancestors) = threads.split_last().ok_or("expected a thread")?;
        let invocation = RapInvocation {
            operation: operation.into(),
            arguments,
            id: id.into(),
            call_id: Some("provider-1".into()),
            callback_url: self.callback_url.clone(),
            group_id: (*thread).into(),
            user_id: None,
            thread_ancestors: (!ancestors.is_empty()).then(|| ancestors.iter().map(|a| (*a).into()).collect()),
        };
        let status = self.http.post(&self.endpoint, &serde_json::to_string(&invocation)?).await?;
        assert_eq!(status, 200, "{id} is not accepted");
        Ok(())
    }

    async fn next(&mut self) -> Result<RapCallback, Failure> {
        Ok(tokio::time::timeout(Duration::from_secs(30), self.callbacks.recv()).await?.ok_or("no more callbacks")?)
    }

    async fn choice(&mut self, id: &str) -> Result<RapUserChoice, Failure> {
        match self.next().await? {
            RapCallback::UserChoice(c) if c.id.as_str() == id => Ok(c),
            other => Err(format!("expected a question of {id}, got {other:?}").into()),
        }
    }

    async fn result(&mut self, id: &str) -> Result<RapToolResult, Failure> {
        match self.next().await? {
            RapCallback::ToolResult(r) if r.id.as_str() == id && r.call_id == Some("provider-1".into()) => Ok(r),
            other => Err(format!("expected the result of {id}, got {other:?}").into()),
        }
    }

    /// Whether the result of a call is an error.
    async fn failed(&mut self, id: &str) -> Result<bool, Failure> {
        Ok(self.result(id).await?.text.ok_or("expected a text")?.starts_with("Error:"))
    }

    /// What a command that ended well printed.
    async fn printed(&mut self, id: &str) -> Result<String, Failure> {
        let text = self.result(id).await?.text.ok_or("expected a text")?;
        Ok(text.strip_suffix("\n\n[exit code: 0]").ok_or(format!("{id}: {text}"))?.into())
    }

    /// Answers by the first label that begins so, and returns the status.
    async fn answer(&self, c: &RapUserChoice, label: &str) -> Result<u16, Failure> {
        let selected = c.choices.iter().position(|l| l.starts_with(label)).ok_or("no such label")?;
        Ok(self.http.post(&c.response_url, &json!({"id": c.id, "selected": selected}).to_string()).await?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let [_, gateway, dir] = std::env::args().collect::<Vec<_>>().try_into().map_err(|_| "GATEWAY DIRECTORY")?;
    let http = SimpleHttpClient::new();
    let loader = ToolsetLoader::new(http.clone(), InMemoryToolsetCache::new());
    let tools = loader.load_toolsets(&[gateway.clone()], ThreadId::from_ref("root")).await?.remove(0).manifest;
    let (callback_url, callbacks) = start_callback_channel().await?;
    let mut r = Runtime { http: http.clone(), endpoint: tools.endpoint, callback_url, callbacks };
    let there = |name: &str| Path::new(&dir).join(name).exists();
    let (root, child) = (["root"], ["root", "child"]);
    println!("{} tools of the gateway {}, callbacks at {}", tools.tools.len(), tools.name, r.callback_url);

    // Questions of the rules: denied, allowed once, allowed for the session. Deny is last, and the default.
    r.invoke(&root, "open", "open_sandbox_direct", json!({"repo": dir})).await?;
    assert!(!r.failed("open").await?);
    r.invoke(&root, "denied", "execute_command", json!({"command": "touch denied"})).await?;
    let asked = r.choice("denied").await?;
    assert_eq!((asked.default, asked.choices.len()), (2, 3), "{:?}", asked.choices);
    assert_eq!(r.answer(&asked, "Deny").await?, 200);
    assert!(r.failed("denied").await? && !there("denied"));
    assert_eq!(r.answer(&asked, "Allow once").await?, 404, "another answer, late");
    r.invoke(&root, "once", "execute_command", json!({"command": "touch once; echo ran"})).await?;
    let asked = r.choice("once").await?;
    assert!(!there("once"), "it ran before it was allowed");
    assert_eq!(r.answer(&asked, "Allow once").await?, 200);
    assert_eq!(r.printed("once").await?, "ran");
    assert_eq!(r.answer(&asked, "Allow once").await?, 200, "the same answer, late");
    r.invoke(&root, "session", "execute_command", json!({"command": "echo one"})).await?;
    let asked = r.choice("session").await?;
    assert_eq!(r.answer(&asked, &asked.choices[1]).await?, 200);
    assert_eq!(r.printed("session").await?, "one");
    r.invoke(&root, "granted", "execute_command", json!({"command": "echo two"})).await?;
    assert_eq!(r.printed("granted").await?, "two");
    println!("denied, allowed once and for the session; another answer, late, gets 404");

    // A sub-thread is a root of its own: the session's grant is neither used nor offered.
    r.invoke(&child, "open-child", "open_sandbox_direct", json!({"repo": dir})).await?;
    assert!(!r.failed("open-child").await?);
    r.invoke(&child, "child", "execute_command", json!({"command": "echo child"})).await?;
    let asked = r.choice("child").await?;
    assert_eq!((asked.default, asked.choices.len()), (1, 2), "{:?}", asked.choices);
    assert_eq!(r.answer(&asked, "Allow once").await?, 200);
    assert_eq!(r.printed("child").await?, "child");
    println!("a sub-thread is asked for itself, and gets its result");

    // The result of a command of more than five seconds is a subscription; the rest comes in events.
    r.invoke(&root, "long", "execute_command", json!({"command": "echo began; sleep 6; echo ended"})).await?;
    let long = r.result("long").await?;
    assert!(long.subscription == Some(true) && long.text.as_ref().is_some_and(|t| t.contains("began")), "{long:?}");
    match r.next().await? {
        RapCallback::SubscriptionEvent(e) if e.r#final == Some(true) && e.tool_call_id.as_str() == "long" => {
            assert_eq!((e.group_id.as_str(), e.text.as_str()), ("root", "ended\n\n[exit code: 0]"));
        }
        other => return Err(format!("expected the last event of long, got {other:?}").into()),
    }
    println!("a subscription, up to the exit code");

    // Questions of sandbox-local itself are relayed: one is answered, one is cancelled before it is.
    for (id, code) in [("made", 200), ("cancelled", 404)] {
        r.invoke(&root, id, "create_file", json!({"path": id, "content": "of the probe\n"})).await?;
        let asked = r.choice(id).await?;
        if id == "cancelled" {
            let notifier = RapNotifier::new(vec![gateway.clone()], http.clone());
            notifier.notify_tool_cancelled(ThreadId::from_ref("root"), ToolCallId::from_ref(id)).await;
        }
        assert_eq!(r.answer(&asked, "Yes once").await?, code);
        assert_eq!((r.failed(id).await?, there(id)), (code == 404, code == 200));
    }
    println!("a question of the tool server is relayed, and its answer gets 404 once the call is cancelled");
    Ok(())
}
