//! Languages with fewer abbreviations: Turkish, Indonesian, Hungarian, Hindi, Arabic.

use super::Words;

pub(super) const OTHER: Words = Words {
    always: "डॉ प्रो د أ م أ.د Doç Yrd Sn",
    before_name: "श्रीमती श्री सुश्री पं कु alb yzb bpk sdr drg jl",
    before_lower: "रु सं पृ ई.पू कि.मी कि.ग्रा vb vd örn bkz cad mah stb kb dkk dll tgl hlm pl",
    before_number: "sok str pag no",
    units: "रु",
    starters: "
        यह वह वे हम मैं तुम आप उस इस और लेकिन पर तो अब तब जब क्या कौन कहाँ
        bu şu o biz siz onlar ben sen ve ama fakat
    ",
    labels: "",
    months: "",
};
