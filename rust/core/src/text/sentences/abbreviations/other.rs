//! Languages with few abbreviations: Hindi, Arabic, Turkish, Romanian, Hungarian, Indonesian.

use super::Words;

pub(super) const OTHER: Words = Words {
    always: "
        डॉ डा प्रो श्री श्रीमती सुश्री कु पं
        د أ م أ.د
        doç yrd sn av alb yzb
        dl dna dvs. bpk sdr drg
    ",
    before_name: "",
    before_lower: "
        रु सं पृ ई.पू कि.मी कि.ग्रा
        vb vd örn yy bkz cad sok mah
        nr str pag etc ş.a
        pl stb kb ill dkk dll tgl hlm jl no
    ",
    starters: "
        यह वह वे हम मैं तुम आप उस इस और लेकिन पर तो अब तब जब क्या कौन कहाँ
        bu şu o biz siz onlar ben sen ve ama fakat
    ",
    months: "",
};
