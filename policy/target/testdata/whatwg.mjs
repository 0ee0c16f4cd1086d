// Prints whatwg.json: how Node's URL, an implementation of the WHATWG URL Standard, reads the addresses below.
//
//     node whatwg.mjs > whatwg.json
//
// host is null where Node refuses the address. base is the address that a relative one is resolved against.

const base = 'https://base.example/dir/';
const inputs = new Set();
const relative = new Set();

// Hosts in many spellings, each behind a usual scheme.
const hosts = [
  'evil.corp', 'EVIL.corp', 'evil.corp.', 'evil..corp', '.evil.corp', 'evil.corp..', '', '.', '..', '-a.corp', 'a-.corp', 'a_b.corp', 'xn--a', 'a b.corp',
  '169.254.169.254', '169.254.43518', '169.16689662', '2852039166', '0xa9fea9fe', '0xA9.0xFE.0xA9.0xFE', '0251.0376.0251.0376', '0251.254.0xa9.254',
  '025177524776', '169.254.169.254.', '169.254.169.254..', '0169.254.169.254', '0x7f.1', '0x.1', '0x', '127.1', '127.0.1', '0', '00', '0.0.0.0', '08.1.1.1', '1.08', '010.8.8.8',
  '256.1.1.1', '1.2.3.256', '1.2.3.4.5', '4294967295', '4294967296', '99999999999999999999', '1.2.3.4x', 'a.1', 'a.0x1', 'a.0xg', '1e3', '-1', '1.-1',
  '１６９.２５４.１６９.２５４', '169。254。169。254', '169．254．169．254', '169｡254｡169｡254', '①⑥⑨.254.169.254', '0ｘ7f.1', 'ｅｖｉｌ．ｃｏｒｐ', 'ⓔⓥⓘⓛ.corp', 'evil。corp',
  'ev\u00adil.corp', 'ev\u200bil.corp', 'ev\u2060il.corp', 'ev\ufeffil.corp', 'ev\u200cil.corp', 'ev\u200dil.corp', 'ev\u202eil.corp', 'ev\ufe0fil.corp', '\u00ad', '127\u00ad.0.0.1',
  'bücher.example', 'BÜCHER.example', 'bu\u0308cher.example', 'xn--bcher-kva.example', 'XN--BCHER-KVA.example', 'faß.example', 'βόλος.example', '例え.テスト', 'ﬁle.example',
  'ℌost.example', 'a℀b.example', 'a／b.example', 'a？b.example', 'a＃b.example', 'a＠b.example', 'a：b.example', 'a\u2024b.example', 'ſ.example', 'K.example', 'İ.example',
  'ev%69l.corp', '%65vil%2ecorp', '%31%36%39.254.169.254', '%EF%BC%9169.254.169.254', 'evil%E3%80%82corp', 'a%00b.corp', 'a%2fb.corp', 'a%23b.corp', 'a%3a80.corp', 'a%40b.corp',
  'a%20b.corp', 'a%0ab.corp', 'a%09b.corp', 'a%25b.corp', 'a%b.corp', 'a%zz.corp', '%', '%ff.corp', '%5b::1%5d', 'a|b.corp', 'a^b.corp', 'a<b.corp', 'a"b.corp', 'a`b.corp', "a'b.corp",
  'a!b.corp', 'a$b.corp', 'a&b.corp', 'a(b.corp', 'a)b.corp', 'a*b.corp', 'a+b.corp', 'a,b.corp', 'a;b.corp', 'a=b.corp', 'a{b.corp', 'a}b.corp', 'a~b.corp', 'a[b.corp', 'a]b.corp',
  'a\u0000b.corp', 'a\u0001b.corp', 'a\u007fb.corp', 'a\tb.corp', 'a\nb.corp', 'a\rb.corp', '\tevil.corp', 'evil.corp\n', 'a\u00a0b.corp', 'a\u3000b.corp', 'a\u2028b.corp',
  '[::1]', '[0:0:0:0:0:0:0:1]', '[::]', '[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[::169.254.169.254]', '[64:ff9b::169.254.169.254]', '[64:ff9b:1::a9fe:a9fe]',
  '[2002:a9fe:a9fe::]', '[::ffff:0:169.254.169.254]', '[fe80::5efe:169.254.169.254]', '[FD00::1]', '[fe80::1%25eth0]', '[fe80::1%eth0]', '[::1', '::1]', '[::1]x', '[::1].corp', '[[::1]]', '[]',
  '[127.0.0.1]', '[1::2::3]', '[12345::]', '[::1.2.3]', '[::01.2.3.4]', '[::ffff:0xa9.254.169.254]', '[v1.a]', '::1', '[0::0]', '[::ffff:1.2.3.4.5]',
  'evil.corp:80', 'evil.corp:443', 'evil.corp:8080', 'evil.corp:', 'evil.corp:080', 'evil.corp:65535', 'evil.corp:65536', 'evil.corp:x', 'evil.corp:80x', 'evil.corp:-1', 'evil.corp::80',
  'evil.corp:8\t0', '[::1]:80', '[::1]:', 'evil.corp:８０', ':80', ':',
  'u@evil.corp', 'u:p@evil.corp', '@evil.corp', ':@evil.corp', 'good.example@evil.corp', 'good.example:80@evil.corp', 'a@b@evil.corp', 'a:b@c:d@evil.corp', 'good.example%40evil.corp', 'u@', 'u:p@',
  'good.example @evil.corp', 'good.example\t@evil.corp', 'good.example\n@evil.corp', 'good.example\u3000@evil.corp', '[::1]@evil.corp', 'evil.corp@[::1]', 'good.example;@evil.corp',
  'evil.corp/@good.example', 'evil.corp?@good.example', 'evil.corp#@good.example', 'evil.corp\\@good.example', 'evil.corp\\.good.example', 'u:p\\@evil.corp', 'good.example&@evil.corp# @x.example',
  'evil.corp/a b', 'evil.corp/a\\b', 'evil.corp?q=a\\b c', 'evil.corp/\u0000', 'evil.corp /x', ' evil.corp', 'evil.corp\u00a0', 'evil.corp/../..//x',
];
for (const h of hosts) inputs.add('http://' + h + (/[/?#\\]/.test(h) ? '' : '/latest'));

// The beginnings of addresses: slashes that are missing, too many, or backslashes, and what is taken away before reading.
const schemes = ['http:', 'https:', 'HTTP:', 'ws:', 'wss:', 'ftp:', 'hTtPs:', 'ht\ttp:', '\nhttp:', ' http:', '\u0000http:', '\u001f \thttp:', 'http\n:', '\u00a0http:', '\ufeffhttp:',
  'view:', 'foo:', 'h\u200bttp:', 'http :', ''];
const slashes = ['', '/', '//', '///', '////', '\\', '\\\\', '/\\', '\\/', '\\\\\\', '/\t/', '\t//', '//\n', '\r/', '/ /', '// ', '/./', '/../', '//./', '/%2f', '%2f%2f', '://'];
for (const s of schemes) for (const l of slashes) {
  inputs.add(s + l + 'evil.corp/x');
  inputs.add(s + l + '169.254.169.254/latest');
  relative.add(s + l + 'evil.corp/x');
}
for (const tail of ['evil.corp', 'u@evil.corp:8080', '[::1]', '0x7f.1', '8080', '8080/x', '%65vil.corp', 'good.example\\@evil.corp']) {
  for (const s of ['http:', 'https:', 'ftp:']) for (const l of ['', '/', '\\', '///']) inputs.add(s + l + tail);
  for (const l of ['//', '\\\\', '/\\', '\\/', '/\t/', '///', '\t\\\\']) relative.add(l + tail);
}
for (const end of ['\n', '\t', ' ', '\u0000', '\r\n', ' \u0001', '\u00a0', '\u2028']) {
  inputs.add('http://evil.corp' + end);
  inputs.add(end + 'http:/evil.corp' + end);
}

function read(input, base) {
  try {
    const u = new URL(input, base);
    return { input, base, protocol: u.protocol, host: u.hostname };
  } catch {
    return { input, base, protocol: null, host: null };
  }
}

const line = (c) => '  ' + JSON.stringify(c).replace(/[\u007f-\uffff]/g, (x) => '\\u' + x.charCodeAt(0).toString(16).padStart(4, '0'));
const cases = [...[...inputs].map((i) => read(i)), ...[...relative].map((i) => read(i, base))];
console.log('[\n' + cases.map(line).join(',\n') + '\n]');
