"""Secrets do not get through, and what is none does."""

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from long_tests import long_but

from lepaute.measure.node_agent.facts import chosen_variables
from lepaute.measure.node_agent.redact import REDACTED, Redactor

plain = Redactor({})

SECRETS = [
    ("git clone https://bob:hunter2@example.org/x.git", "hunter2"),
    ("https://bob:hun@ter2@example.org/", "ter2"),
    ("curl --password hunter2 -o x", "hunter2"),
    ("curl --password=hunter2", "hunter2"),
    ("tool -token hunter2", "hunter2"),
    ("tool --db-password 'hunter two' next", "hunter two"),
    ('["tool", "--password", "hunter2", "-v"]', "hunter2"),
    ('["tool", "--token=hunter2", "-v"]', "hunter2"),
    ("password: hunter2", "hunter2"),
    ("Password = hunter2", "hunter2"),
    ('{"password": "hunter2", "a": 1}', "hunter2"),
    ('{"password": "hunt\\"er2", "a": 1}', "er2"),
    ("{'api_key': 'hunter2'}", "hunter2"),
    ('"{\\"client_secret\\": \\"hunter2\\"}"', "hunter2"),
    ("MYSQL_PWD=hunter2", "hunter2"),
    ("DB_PASS=hunter2 ./run", "hunter2"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("https://example.org/?access_token=hunter22&page=2", "hunter22"),
    ("Authorization: Basic Ym9iOmh1bnRlcjI=", "Ym9i"),
    ("curl -H 'Authorization: Bearer abc.def' https://example.org", "abc.def"),
    ("{'Authorization': 'token abcdefg'}", "abcdefg"),
    ("> Cookie: session=abcdef; theme=dark", "abcdef"),
    ("Set-Cookie: id=a3fWa; Secure", "a3fWa"),
    ("X-Api-Key: abcdef", "abcdef"),
    ("sent Bearer abcdefghijklmnopqrstuvwx.yz", "abcdefghij"),
    ("key AKIAIOSFODNN7EXAMPLE is", "AKIAIOSFODNN7EXAMPLE"),
    ("ghp_" + "a1B2" * 9, "a1B2a1B2"),
    ("github_pat_" + "a1B2" * 9, "a1B2a1B2"),
    ("at glpat-abcdefghij1234567890.", "abcdefghij"),
    ("xoxb-123456789012-abcdefGHIJ", "abcdefGHIJ"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl done", "c2lnbmF0dXJl"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nxyz=\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n", "b3BlbnNz"),  # cut before its end
    ("lepaute run e.py --set db_pwd=hunter2 --set n=4", "hunter2"),
    ("Server=h;Uid=bob;Pwd=hunter2;", "hunter2"),
    ('{"pw": "hunter2"}', "hunter2"),
    ("{'pwd': 'hunter2'}", "hunter2"),
    ("tool --db-pwd hunter2", "hunter2"),
    ("sshpass -p hunter2 ssh bob@node1", "hunter2"),
    ("sshpass -phunter2 ssh bob@node1", "hunter2"),
    ("sshpass -v -p 'hunter two' ssh", "hunter two"),
    ('["/usr/bin/sshpass", "-p", "hunter2", "ssh", "node1"]', "hunter2"),
    ('[\n "sshpass",\n "-p",\n "hunter2",\n "ssh"\n]', "hunter2"),
    ("curl -s -u bob:hunter2 https://example.org/", "hunter2"),
    ("curl -H 'A: b' --user=bob:hunter2 https://example.org/", "hunter2"),
    ('["curl", "-H", "A: b", "-u", "bob:hunter2", "https://example.org"]', "hunter2"),
    ("docker login -u bob -p hunter2 registry.example.org", "hunter2"),
    ("podman login --username bob -p=hunter2 registry.example.org", "hunter2"),
    ("mysqldump -u bob -phunter2 base", "hunter2"),
    ('["mysql", "-phunter2", "base"]', "hunter2"),
    ("ldapsearch -x -D cn=bob -w hunter2", "hunter2"),
    ("ipmitool -H bmc1 -U admin -P hunter2 power status", "hunter2"),
    ("smbclient -U bob%hunter2 //h/s", "hunter2"),
    ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aHVudGVyMg==;EndpointSuffix=x", "aHVudGVyMg"),
    ("Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=aHVudGVyMg=", "aHVudGVyMg"),
    ("https://a.blob.core.windows.net/c?sv=2020&se=2030-01-01&sig=aHVudGVy%2BMg%3D&sp=r", "aHVudGVy"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature=0123456789abcdef0123", "0123456789abcdef"),
    ("https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx", "abcdefghijkl"),
    ("https://discord.com/api/webhooks/123456789012345678/" + "a1B2" * 17, "a1B2a1B2"),
    ("machine example.org login bob password hunter2\n", "hunter2"),
    ("machine example.org\n  login bob\n  password hunter2\n", "hunter2"),
    (json.dumps("machine example.org\n\tlogin bob\n\tpassword hunter2\n"), "hunter2"),
    (json.dumps("-----BEGIN PRIVATE KEY-----\nMIIEabc\n-----END PRIVATE KEY-----\n"), "MIIEabc"),
    ("https://bob:hun/ter2@example.org/x", "ter2"),
    ("https://bob:hun?ter#2@example.org/x", "ter#2"),
    ("https://api.telegram.org/bot123456789:" + "aB3_" * 8 + "abc/sendMessage", "aB3_aB3_"),
    ("https://discord.com/api/v10/webhooks/123456789012345678/" + "a1B2" * 17, "a1B2a1B2"),
    ("https://hooks.slack-gov.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx", "abcdefghijkl"),
    ("tgram://123456789:" + "aB3_" * 8 + "abc/12345", "aB3_aB3_"),
    ("--notify slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "TIiajkdnl"),
    ("--notify=discord://123456789012345678/" + "a1B2" * 17, "a1B2a1B2"),
    ("StoragePass=hunter2", "hunter2"),
    ("AccountingStoragePass = hunter2", "hunter2"),
    ("n1 ansible_ssh_pass=hunter2 ansible_user=bob", "hunter2"),
    ("ansible_become_pass: hunter2", "hunter2"),
    ("<password>hunter2</password>", "hunter2"),
    ('<ns:dbPassword type="plain">hunter two</ns:dbPassword>', "hunter two"),
    ("'password' => 'hunter2',", "hunter2"),
    ('"db_password"=>"hunter2"', "hunter2"),
    ("define('DB_PASSWORD', 'hunter2');", "hunter2"),
    ("define( 'AUTH_KEY', 'a b,c$d' );", "a b,c$d"),
    ("localhost:5432:lepaute:bob:hunter2\n", "hunter2"),
    ("*:*:*:bob:hun\\:ter2\n", "ter2"),
    ("a\ndb.example.org:5432:*:bob:hunter2", "hunter2"),
    ("bob:$6$abcdefgh$" + "aB3/" * 21 + "ab:19000:0:99999:7:::", "aB3/aB3/"),
    ("rootpw --iscrypted $6$rounds=5000$salt$" + "aB3." * 21 + "ab", "aB3.aB3."),
    ("$5$abcdefgh$" + "aB3/" * 10 + "abc", "aB3/aB3/"),
    ("$1$abcdefgh$" + "aB3/" * 5 + "ab", "aB3/aB3/"),
    ("bob:$apr1$abcdefgh$" + "aB3/" * 5 + "ab", "aB3/aB3/"),
    ("$2y$10$" + "aB3/" * 13 + "a", "aB3/aB3/"),
    ("$y$j9T$" + "aB3/" * 5 + "$" + "aB3/" * 10 + "abc", "aB3/aB3/aB3/aB3/aB3/aB3/"),
    ("$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$" + "aB3/" * 10, "aB3/aB3/"),
    ("MUNGE_KEY=hunter2", "hunter2"),
    ("export MUNGE_KEY='hunter two'", "hunter two"),
    ("signing_key: hunter2", "hunter2"),
    ('psk="correct horse"', "correct"),
    ("wpa_psk=hunter22", "hunter22"),
    ("PreSharedKey = aHVudGVyMg==", "aHVudGVyMg"),
    ("wandb login " + "0f" * 20, "0f0f0f"),
    ("wandb login --relogin " + "0f" * 20, "0f0f0f"),
    ("wandb login --host https://w.example.org " + "0f" * 20, "0f0f0f"),
    ('["wandb", "login", "' + "0f" * 20 + '"]', "0f0f0f"),
    ("wandb login wandb_v1_" + "aB3_" * 10, "aB3_aB3_"),
    ("Public-Lines: 1\nAAAAB3\nPrivate-Lines: 2\nAAAAgQ\nhunter2=\nPrivate-MAC: 0f\n", "hunter2"),
    ("Private-Lines: 2\r\nAAAAgQ\r\nhunter2", "hunter2"),
    (json.dumps("Private-Lines: 2\nAAAAgQ\nhunter2=\nPrivate-MAC: 0f\n"), "hunter2"),
]

#: Made by the published form of each token: beginning, alphabet, length.
TOKENS_MADE = [
    *("AKIA" + "Q" * 16, "A3TX" + "Q" * 16, "AIza" + "aB3_" * 8 + "xyz", "LTAI" + "a1" * 10, "abc8Q~" + "aB3." * 8),
    *("dop_v1_" + "0f" * 32, "dapi" + "0f" * 16, "HRKU-AA" + "aB" * 29, "fo1_" + "a" * 43, "fm2_" + "aB3/" * 30),
    *("sha256~" + "aB3-" * 10 + "abc", "gho_" + "aB" * 18, "gldt-" + "aB3_" * 5, "GR1348941" + "a" * 20),
    *("ATATT3" + "aB3=" * 40, "AKCp" + "a" * 69, "cmVmd" + "a" * 59, "npm_" + "aB3" * 12, "rubygems_" + "0f" * 24),
    *("dckr_pat_" + "aB3-" * 7, "pul-" + "0f" * 20, "hvs." + "aB3_" * 24, "a1" * 7 + ".atlasv1." + "aB3_" * 16),
    *("dp.pt." + "a" * 43, "AGE-SECRET-KEY-1" + "Q" * 58, "pscale_pw_" + "aB3." * 10, "xapp-1-A0-1-" + "0f" * 20),
    *("A3-ABCDEF-ABCDEFGHIJK-ABCDE-ABCDE-ABCDE", "SG." + "aB3." * 16 + "ab", "glc_" + "aB3/" * 10),
    *("glsa_" + "a" * 32 + "_" + "0f" * 4, "dt0c01." + "A" * 24 + "." + "B" * 64, "NRAK-" + "A" * 27),
    *("sntryu_" + "0f" * 32, "PMAK-" + "0f" * 12 + "-" + "0f" * 17, "pnu_" + "aB3" * 12, "lin_api_" + "aB" * 20),
    *("ntn_" + "1" * 11 + "a" * 35, "shpat_" + "0f" * 16, "sk_live_" + "aB3" * 8, "pplx-" + "aB3" * 16),
    *("sk-proj-" + "aB3_" * 20, "sk-ant-api03-" + "aB3-" * 23 + "aAA", "api_org_" + "aB" * 17),
]
INNOCENT = [
    "PWD=/home/bob; pwd=/tmp; db_pwd=/run/x; pwd: /home/bob",
    '{"pw": 12.5, "pwd": "/home/bob"}',
    "pw=32 pw = 12.5 pw: 3.2s npw=7",
    "singularity exec --pwd /work image.sif ./run",
    "docker run -p 8080:80 -u 1000:1000 image",
    "docker build -p x . && echo login",
    "mysql -p base -P 3306",
    "curl -u bob https://example.org",
    "curl --user-agent x https://example.org",
    '["sshpass", "-p"]',
    '["docker", "login", "-p"]',
    '["mysql", "-p", "base"]',
    "mpirun -np 4 -x OMP_NUM_THREADS=4 ./xhpl -p 2 -q 2",
    "srun -p debug -u --mem=4G python -u run.py -P 4 -a x -w node1",
    "https://example.org/?significance=0.05&design=abcdefghijkl",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 sig=none",
    "the machine asks at login for a password; password authentication is off",
    "d41d8cd98f00b204e9800998ecf8427e  da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "design_row,kernel,m,n,k,start_s,duration_s,rank,cpu\n0,dgemm,512,512,64,1784032.123456789,0.000123,0,1\n",
    "KEYBOARD=us",
    "tool --keypad 12 --keyboard us",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '{"sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}',
    "Author: Jane Doe <jane@example.org>",
    "error: unexpected token: foo",
    "tokens=4096 max_tokens: 128",
    "token = next(words)",
    "if token == other:",
    "std::auth::token::parse",
    "key: value",
    "PWD=/home/bob OLDPWD=/tmp",
    "PATH=/usr/bin:/bin",
    "PasswordAuthentication no",
    "password: yes (using password: YES)",
    "--password-file /etc/x",
    "--no-auth --verbose",
    "http://example.org:80/a?b=c#d",
    "https://registry.example.org/@scope/name@1.2",
    "tests: pass=12 fail=3",
    "authorization: denied for this user",
    "the cookie: a sweet thing",
    "risk-assessment-of-the-machine-learning-models-in-use",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzv bob@host",  # a public key is public
    "-----BEGIN CERTIFICATE-----\nMIIEabc\n-----END CERTIFICATE-----",
    "size_bytes,time_s\n1024,1.5e-06\n",
    "secretary: Ann; authored by Bob; bypass=on; compass: north",
    "http://example.org:8080/a@b https://example.org:443?to=bob@example.org http://[::1]:80/x@y",
    "git@example.org:group/project.git host:/export/home user@host:/path",
    "https://api.example.org/bots/123456789 /botany/12:30",
    "https://discord.com/developers https://hooks.slack.com/ slack://open redis://n1:6379/0 tcp://10.0.0.1:2375",
    "StorageHost=db StorageType=accounting_storage/slurmdbd LowPass=0.5 HighPass = 12 AllPass=1",
    "first_pass=12 n_pass: 3 num_pass=3 ansible_user=bob ansible_port=22",
    "<password/> <password></password> <passwordPolicy>strict</passwordPolicy> <key>value</key> <a>b</a>",
    "'host' => 'db', 'port' => 3306, 'key' => 'value', x => 12, token => next",
    "define('WP_DEBUG', 'false'); define('DB_HOST', 'localhost'); #define(KEY, 3)",
    "00:11:22:33:44:55\nfe80:1234:5678:abcd:ef01:2:3:4\nsrc/a.c:1200:34: warning: unused",
    "root:x:0:0:root:/root:/bin/sh",
    "bin:*:19000:0:99999:7:::\n12:30:45:67:89\nn1:5432:ready\nhost:5432:database:user\n2026-01-02T10:1200:30",
    "$1 $2 $6$ $5$a $1$2$3 awk '{print $1$2$3$4}' US$6$7 $2a $y$x $argon2",
    "monkey=1 MUNGE_KEY_FILE=/etc/munge/munge.key key_mgmt=WPA-PSK qpsk=12345678 psk: 8",
    "wandb login; wandb login --relogin; wandb sync run-20260102; commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "Private-Lines: none Public-Lines: 3\nAAAAB3NzaC1lZDI1NTE5AAAAIGzv\nEncryption: none",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_of_a_known_form_does_not_get_through(text: str, secret: str) -> None:
    assert secret in text
    shown = plain.redact(text)
    assert secret not in shown
    assert REDACTED in shown
    assert plain.redact(shown) == shown


@pytest.mark.parametrize("token", TOKENS_MADE)
def test_a_token_of_a_published_form_does_not_get_through(token: str) -> None:
    # An innocent beginning of it may stay, such as that of a web address; nothing of its end does.
    for text in (token, f"key {token} next", f'"{token}",', f"a={token}\n"):
        assert token[-8:] not in plain.redact(text)


@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_text_gets_through_unchanged(text: str) -> None:
    assert plain.redact(text) == text


def test_what_stands_around_a_secret_stays() -> None:
    assert plain.redact("https://bob:pw@example.org/x.git") == f"https://{REDACTED}@example.org/x.git"
    assert plain.redact("run --token=abc --size 4") == f"run --token={REDACTED} --size 4"
    argv = plain.redact('["tool", "--password", "hunter2", "-v"]')
    assert json.loads(argv) == ["tool", "--password", REDACTED, "-v"]
    assert json.loads(plain.redact('{"password": "x\\"y", "n": [1]}')) == {"password": REDACTED, "n": [1]}
    cut = "-----BEGIN EC PRIVATE KEY-----\n" + "A" * 64 + "\nnothing more of it, the time was 5 s\n"
    assert plain.redact(cut) == f"{REDACTED}nothing more of it, the time was 5 s\n"


def test_values_of_secret_variables_are_found_wherever_they_are() -> None:
    redactor = Redactor({"CI_JOB_TOKEN": "p&ss/w\u00f6rd", "HOME": "/home/bob", "KEYBOARD_LAYOUT": "german"})
    assert redactor.redact("x p&ss/w\u00f6rdy") == f"x {REDACTED}y"
    assert redactor.redact("https://h/?a=p%26ss%2Fw%C3%B6rd") == f"https://h/?a={REDACTED}"
    assert redactor.redact(json.dumps({"a": "p&ss/w\u00f6rd"})) == json.dumps({"a": REDACTED})
    assert redactor.redact("/home/bob german") == "/home/bob german"
    # A number is not looked for inside measurements.
    assert Redactor({"PIN_TOKEN": "123456"}).redact("71234560 123456") == f"71234560 {REDACTED}"
    assert redactor.data("\u00f6 p&ss/w\u00f6rd".encode() + b"\xff") == f"\u00f6 {REDACTED}".encode() + b"\xff"


def test_words_that_session_and_path_variables_hold_are_left_in_other_texts() -> None:
    environ = {"XDG_SESSION_DESKTOP": "ubuntu", "SSH_AUTH_SOCK": "/tmp/agent.1", "A_TOKEN": "short", "B_PASS": "false"}
    environ |= {"SORT_KEY": "default", "AUTHOR": "Jane Doe"}
    text = "ubuntu /tmp/agent.1 short false default Jane Doe"
    assert Redactor(environ).redact(text) == text


def test_urls_of_our_own_variables_are_found_wherever_they_are_and_folders_are_none() -> None:
    own = {
        "LEPAUTE_NOTIFY": "json://h/hooks/abcdefgh mailto://bob:hunter2@example.org",
        "LEPAUTE_STORE": "postgresql://bob:hunter3@db/lepaute",
        "LEPAUTE_HOME": "/home/bob/lepaute",
    }
    redactor = Redactor(own)
    hidden = dict.fromkeys(("LEPAUTE_NOTIFY", "LEPAUTE_STORE"), REDACTED)
    assert redactor.environment(own) == {**hidden, "LEPAUTE_HOME": "/home/bob/lepaute"}
    assert chosen_variables(own, redactor)["values"] == {**hidden, "LEPAUTE_HOME": "/home/bob/lepaute"}
    for secret in ("json://h/hooks/abcdefgh", "hunter2", "postgresql://bob:hunter3@db/lepaute", "hunter3"):
        assert redactor.redact(f"x {secret} y") == f"x {REDACTED} y"
    assert redactor.redact("/home/bob/lepaute json://h/hooks/") == "/home/bob/lepaute json://h/hooks/"
    folder = {"LEPAUTE_STORE": "/data/fleet-store"}
    assert Redactor(folder).environment(folder) == folder


def test_secret_values_of_variables_and_of_options_are_hidden_whole_and_in_others_what_is_secret() -> None:
    shown = plain.environment({"X_TOKEN": "a", "URL": "http://u:p@h/", "N": "1", "EMPTY_KEY": ""})
    assert shown == {"X_TOKEN": REDACTED, "URL": f"http://{REDACTED}@h/", "N": "1", "EMPTY_KEY": ""}
    assert plain.argv(["t", "--token", "two words", "--password=x", "--auth", "-v", "-p", "3"]) == [
        *("t", "--token", REDACTED, f"--password={REDACTED}", "--auth", "-v", "-p", "3")
    ]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["sshpass", "-p", "two words", "ssh", "-p", "22"], ["sshpass", "-p", REDACTED, "ssh", "-p", REDACTED]),
        (["/usr/bin/sshpass", "-phunter2", "ssh"], ["/usr/bin/sshpass", f"-p{REDACTED}", "ssh"]),
        (["curl", "-u", "bob:hunter2", "https://h/"], ["curl", "-u", REDACTED, "https://h/"]),
        (["curl", "-u", "bob", "https://h/"], ["curl", "-u", "bob", "https://h/"]),
        (["curl", "--user=bob:hunter2"], ["curl", f"--user={REDACTED}"]),
        (["docker", "login", "-p", "hunter2"], ["docker", "login", "-p", REDACTED]),
        (["docker", "run", "-p", "80:80"], ["docker", "run", "-p", "80:80"]),
        (["mysql", "-p", "base"], ["mysql", "-p", "base"]),
        (["wandb", "login", "0f" * 20], ["wandb", "login", REDACTED]),
        (["wandb", "login", "--relogin", "0f" * 20], ["wandb", "login", "--relogin", REDACTED]),
        (["wandb", "sync", "0f" * 20], ["wandb", "sync", "0f" * 20]),
        (["mysql", "-phunter2", "base"], ["mysql", f"-p{REDACTED}", "base"]),
        (["sh", "-c", "sshpass -p hunter2 ssh h"], ["sh", "-c", f"sshpass -p {REDACTED} ssh h"]),
        (["lepaute", "run", "--set", "db_pwd=hunter2"], ["lepaute", "run", "--set", f"db_pwd={REDACTED}"]),
        (["mpirun", "-np", "4", "./xhpl", "-p", "2"], ["mpirun", "-np", "4", "./xhpl", "-p", "2"]),
        (["sshpass", "-p"], ["sshpass", "-p"]),
    ],
)
def test_secrets_that_programs_are_given_are_hidden_in_command_lines(words: list[str], shown: list[str]) -> None:
    assert plain.argv(words) == shown
    assert plain.argv(shown) == shown


def test_variables_of_databases_and_webhooks_are_secret_and_the_working_directory_is_not() -> None:
    shown = plain.environment({"MYSQL_PWD": "a", "DB_PW": "b", "SLACK_WEBHOOK": "c", "PWD": "/x", "OLDPWD": "/y"})
    assert shown == {**dict.fromkeys(("MYSQL_PWD", "DB_PW", "SLACK_WEBHOOK"), REDACTED), "PWD": "/x", "OLDPWD": "/y"}


_values = st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=6, max_size=40)


@pytest.mark.slow
@given(_values, st.text(), st.text())
@example(value="00000\x85", before="", after="")  # the last character is a blank; without it, it is too short
def test_no_text_brings_the_value_of_a_secret_variable_through(value: str, before: str, after: str) -> None:
    # These are taken for what they look like: a path, a number, a word that says that there is no secret.
    assume(value[0] not in "/~" and not value.isdecimal() and not set(value) & set("().,;*"))
    assume(value.lower() not in {"required", "optional"})
    assert value not in Redactor({"MY_SECRET": value}).redact(before + value + after).replace(REDACTED, "\x00")


@given(st.text(max_size=300))
def test_redaction_never_fails_and_a_second_one_changes_nothing(text: str) -> None:
    once = plain.redact(text)
    assert plain.redact(once) == once


HARD = [
    *(
        "curl ", "curl -", "docker login ", "mysql", "sshpass -p ", '"curl",\n', "machine a login ",
        "a@hooks.slack.com/",
    ),
    *("://a:b/", "://a:", "slack://aaaaaaa", "/bot123456", "$6$a", "$y$a$b", "$argon2id$v=1$m$", "</", "<password>a"),
    *(
        "\na:5432:a:a:", "\na:", "define('_KEY','", "Private-Lines: 1\n", "Private-Lines: 1\naa\n", "wandb login ",
        "psk=",
    ),
    *("?sig=", "&sig=aaaaaaa", "hvs.", "a.atlasv1.", "abc8Q~", "pwd", "pw=", "A3-", "SG.", "xapp-1-", "sk-ant-"),
    *("password ", "--password", " --a", "-a", "://a", "://a@", "eyJabcdef.", "-eyJ", "cookie:", "x-x-", "token:'"),
    *('token=\\"', "glpat-", "a" * 99, "secret\\", "bearer ", "Authorization: Basic "),
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 70 + "\n",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", long_but(HARD, *HARD[::4]))
def test_a_long_text_made_to_be_hard_takes_time_in_proportion_to_its_length(unit: str) -> None:
    # A pattern that looks at every pair of these places would need a quarter of an hour: that it ends is the test.
    plain.redact(unit * (300_000 // len(unit)))


@pytest.mark.slow
def test_a_megabyte_of_all_that_is_hard_is_redacted() -> None:
    block = "\n".join(unit * 100 for unit in HARD)
    assert len(plain.redact(block * (1_000_000 // len(block)))) > 10_000
