//! The command-line options for tokens, permissions and TLS.

use std::{collections::BTreeSet, path::PathBuf};

use crate::{
    core::{Action, Security},
    net::{Tls, TlsOptions},
};
use anyhow::{Context, bail};
use clap::Args;

/// Who may connect, and do what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Authentication and authorization (off unless --token is given)")]
pub(super) struct SecurityOptions {
    /// Only let in clients that bring a token, and know who brings TOKEN as NAME. Repeatable. Clients use token
    /// authentication; admin calls need the header "Authorization: Bearer TOKEN"; /control/v1 stays open
    #[arg(long = "token", value_name = "NAME=TOKEN", value_parser = token)]
    tokens: Vec<(String, String)>,

    /// Switch authorization on: NAME may do everything, others what --grant says. Repeatable
    #[arg(long = "superuser", value_name = "NAME", requires = "tokens")]
    superusers: Vec<String>,

    /// Switch authorization on, and let NAME act in a namespace, as alice=public/default:produce,consume. Repeatable.
    /// The namespace is there from the start.
    /// Superusers change it later at /admin/v2/namespaces/TENANT/NAMESPACE/permissions/NAME
    #[arg(long = "grant", value_name = "NAME=TENANT/NAMESPACE:ACTION,…", requires = "tokens", value_parser = grant)]
    grants: Vec<Grant>,
}

#[derive(Debug, Clone)]
struct Grant {
    principal: String,
    namespace: String,
    actions: BTreeSet<Action>,
}

fn token(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, token)) if !name.is_empty() && !token.is_empty() => {
            Ok((name.to_owned(), token.to_owned()))
        }
        _ => Err("it has to look like alice=secret".to_owned()),
    }
}

fn grant(text: &str) -> Result<Grant, String> {
    let shape = || "it has to look like alice=public/default:produce,consume".to_owned();
    let (principal, rest) = text.split_once('=').ok_or_else(shape)?;
    let (namespace, actions) = rest.split_once(':').ok_or_else(shape)?;
    if principal.is_empty() || namespace.split('/').count() != 2 || namespace.split('/').any(str::is_empty) {
        return Err(shape());
    }
    let actions = actions
        .split(',')
        .map(|name| Action::parse(name).ok_or_else(|| format!("{name:?} is neither produce nor consume")))
        .collect::<Result<_, _>>()?;
    Ok(Grant { principal: principal.to_owned(), namespace: namespace.to_owned(), actions })
}

impl SecurityOptions {
    /// What they ask for.
    pub(super) fn security(&self) -> anyhow::Result<Option<Security>> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let mut security = Security::default();
        for (name, token) in &self.tokens {
            if security.tokens.insert(token.clone(), name.clone()).is_some_and(|other| other != *name) {
                bail!("two names share a token, one of them is {name}");
            }
        }
        let named = |name: &String| self.tokens.iter().any(|(known, _)| known == name);
        let granted = self.grants.iter().map(|g| &g.principal);
        if let Some(name) = self.superusers.iter().chain(granted).find(|name| !named(name)) {
            bail!("{name} has no --token");
        }
        for name in &self.superusers {
            security = security.superuser(name);
        }
        for g in &self.grants {
            security = security.grant(&g.namespace, &g.principal, g.actions.iter().copied());
        }
        Ok(Some(security))
    }
}

/// Refuses a first port that leaves none for the last broker.
pub(crate) fn ports_exist(option: &str, first: u16, brokers: u32) -> anyhow::Result<()> {
    let last = u32::from(first) + brokers.saturating_sub(1);
    if first != 0 && last > u32::from(u16::MAX) {
        bail!("{option} {first}: broker {} would need port {last}, beyond 65535", brokers.saturating_sub(1));
    }
    Ok(())
}

/// Ports for TLS.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(super) struct TlsArguments {
    /// Listen for TLS too; the plain ports stay open. Without --tls-cert the certificate is made at start
    #[arg(long)]
    tls: bool,

    /// TLS port of the first broker; broker i listens on PORT+i. 0 picks free ports
    #[arg(long, value_name = "PORT", default_value_t = 6750, requires = "tls")]
    tls_port: u16,

    /// TLS admin port of the first broker; broker i listens on PORT+i. 0 picks free ports
    #[arg(long, value_name = "PORT", default_value_t = 8443, requires = "tls")]
    tls_admin_port: u16,

    /// The certificate of every broker, with its chain, as PEM
    #[arg(long, value_name = "FILE", requires = "tls", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Write what clients have to trust into this file, as PEM
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_trust: Option<PathBuf>,
}

impl TlsArguments {
    /// The ports and the certificate that they ask for. Reads files.
    pub(super) fn read(&self, brokers: u32, host: &str) -> anyhow::Result<Option<TlsOptions>> {
        if !self.tls {
            return Ok(None);
        }
        ports_exist("--tls-port", self.tls_port, brokers)?;
        ports_exist("--tls-admin-port", self.tls_admin_port, brokers)?;
        let certificate = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => {
                let read = |file: &PathBuf| {
                    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
                };
                Tls::from_pem(&read(cert)?, &read(key)?)
                    .with_context(|| format!("{} and {}", cert.display(), key.display()))?
            }
            _ => Tls::self_signed(brokers, Some(host))?,
        };
        Ok(Some(TlsOptions { certificate, port: self.tls_port, admin_port: self.tls_admin_port }))
    }

    /// Writes what clients have to trust, if that is wanted.
    pub(super) fn write_trust(&self, certificate: &Tls) -> anyhow::Result<()> {
        match &self.tls_trust {
            Some(file) => std::fs::write(file, certificate.trust_pem())
                .with_context(|| format!("cannot write {}", file.display())),
            None => Ok(()),
        }
    }
}
